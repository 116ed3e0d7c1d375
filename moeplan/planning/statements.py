"""What a plan says about itself: readiness, the four dimensions, risks, the next step, assumptions."""

from __future__ import annotations

from functools import lru_cache

from moeplan.model.plan import Dimension, Dimensions, EvidencePolicy, NextAction, Readiness

__all__ = [
    "ASSUMPTIONS",
    "EVIDENCE_POLICY",
    "build_dimensions",
    "build_next_action",
    "build_readiness",
    "build_risks",
]

_KEPT = 4096

EVIDENCE_POLICY = EvidencePolicy(
    "calculated",
    False,
    "This plan calculates a static memory floor and sets out how to test the rest; nothing in it was measured.",
)

ASSUMPTIONS = (
    "The memory of an accelerator is the decimal gigabytes that the versioned registry states.",
    "The reserve is taken off first, then whole accelerators are counted.",
    "Filling nodes is a habit of planning and says nothing about which sharding the runtime supports.",
)

_BELOW_FLOOR = "The accelerators asked for cannot hold the checkpoint's tensors."
_UNSUPPORTED = "A reviewed record says that this runtime does not serve this model on this hardware."

_LOAD_UNKNOWN = (
    "The floor counts tensor bytes at rest; whatever the runtime allocates comes on top.",
    "Nothing is claimed about support in framework, kernels, interconnect, quantization or sharding.",
    "Left out are KV cache, activations, routing buffers, fragmentation by the allocator and host memory.",
)

_OTHERS = (
    (
        "Nobody has measured latency, throughput, retained quality or full memory use.",
        (
            "whether the runtime loads the checkpoint",
            "peak of resident memory and the room left for KV cache",
            "P95 of the time to first token and of the time between tokens",
            "quality that the serving configuration retains",
        ),
    ),
    (
        "Only a run shows concurrency, balance of routing, pressure on communication and resilience.",
        (
            "most throughput within the latency targets",
            "how load spreads over the experts",
            "share of time in all-to-all communication",
            "what happens when a part fails and returns",
        ),
    ),
    (
        "A cost needs evidence of successful tokens, utilization, power and prices.",
        (
            "cost of one million output tokens that succeeded",
            "energy of a token that succeeded",
            "cost of a month at the utilization observed",
        ),
    ),
)


@lru_cache(maxsize=64)
def build_readiness(residency: str, compatibility: str) -> Readiness:
    """Return whether validation is worth starting; ``residency`` and ``compatibility`` are statuses."""
    if residency == "fail":
        return Readiness("blocked", _BELOW_FLOOR, residency, compatibility)
    if compatibility == "unsupported":
        return Readiness("blocked", _UNSUPPORTED, residency, compatibility)
    if residency == "unknown":
        reason = "The memory floor cannot be calculated before what is missing in the registry is known."
    else:
        reason = "The memory floor is cleared on paper; everything else has to be shown by running it."
    return Readiness("validation_required", reason, residency, compatibility)


@lru_cache(maxsize=_KEPT)
def build_dimensions(
    residency: str, unsupported: bool, minimum: int | None, rounded: int | None, per_node: int
) -> Dimensions:
    """Return the four dimensions; all are blocked where the floor fails or the configuration is unsupported."""
    blocked = unsupported or residency == "fail"
    status = "blocked" if blocked else {"pass": "conditional", "unknown": "unknown"}[residency]
    known: tuple[str, ...] = ()
    if minimum is not None and rounded is not None:
        known = (
            f"The tensors alone need at least {minimum} accelerator(s).",
            f"Rounded up it takes {rounded} accelerator(s) to fill nodes of {per_node}.",
        )
    summary = {
        "fail": "The checkpoint's tensors do not fit on the accelerators asked for once the reserve is held back.",
        "pass": "The checkpoint's tensors fit on the accelerators asked for once the reserve is held back.",
        "unknown": "Whether the checkpoint's tensors fit cannot be calculated yet.",
    }[residency]
    if unsupported and residency != "fail":
        summary = _UNSUPPORTED
    load = Dimension(status, "calculated" if known else "unknown", summary, known, _LOAD_UNKNOWN)
    return Dimensions(load, *_other_dimensions(blocked))


@lru_cache(maxsize=2)
def _other_dimensions(blocked: bool) -> tuple[Dimension, ...]:
    status = "blocked" if blocked else "unknown"
    return tuple(Dimension(status, "unknown", summary, (), unknown) for summary, unknown in _OTHERS)


@lru_cache(maxsize=_KEPT)
def build_risks(residency: str, compatibility: str, runtime: str) -> tuple[str, ...]:
    """Return the risks in order."""
    risks = []
    if residency == "fail":
        risks.append("Fewer accelerators are asked for than the static floor of the checkpoint needs.")
    if compatibility == "unknown":
        risks.append(f"That {runtime} serves exactly this configuration is shown by no reviewed record.")
    elif compatibility == "unsupported":
        risks.append(f"A reviewed record says that {runtime} does not support this configuration.")
    risks.append(
        "That tensors fit says nothing about KV cache, activations, routing buffers, fragmentation and host memory."
    )
    risks.append("No controlled run backs any prediction of speed or cost so far.")
    return tuple(risks)


@lru_cache(maxsize=_KEPT)
def build_next_action(
    residency: str,
    unsupported: bool,
    tensor_bytes_known: bool,
    minimum: int | None,
    rounded: int | None,
    per_node: int,
) -> NextAction:
    """Return the one next step. What no number of accelerators cures comes first."""
    if unsupported:
        return NextAction(
            "change_unsupported_configuration", "Choose another runtime, model or accelerator; this one is ruled out."
        )
    if residency == "fail":
        summary = f"Ask for at least {minimum} accelerator(s), or for {rounded} to fill nodes of {per_node}."
        return NextAction("increase_capacity", summary)
    if residency == "pass":
        return NextAction("execute_validation", "Work through the gates in their order, the artifact first.")
    if not tensor_bytes_known:
        return NextAction(
            "resolve_artifact_size", "Find the exact tensor bytes: digest the checkpoint and plan with its manifest."
        )
    return NextAction(
        "resolve_accelerator_memory", "Settle the memory of one accelerator in a registry and plan again with it."
    )
