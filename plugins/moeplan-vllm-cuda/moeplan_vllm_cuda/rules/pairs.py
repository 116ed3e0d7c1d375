"""Prefill and decode: what each half must have, and what both must have alike."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from moeplan_vllm.families import name_of
from moeplan_vllm.rules.derived import is_paired, speculates
from moeplan_vllm.rules.placing import across_hosts, rdma_visible, same_node
from moeplan_vllm.rules.reading import connectors, count, flag, is_set, known_text, look, place_of, transfer

from moeplan.facts.judge import Hit
from moeplan.facts.launches import Scene, Subject

__all__ = [
    "announced_address",
    "devices_and_locks",
    "distinct_ports",
    "expandable_segments",
    "failure_policy",
    "pairs_of",
    "same_build",
    "same_layers",
    "same_sizes",
    "same_speculation",
]

_HOST = "environment VLLM_NIXL_SIDE_CHANNEL_HOST"
_PORT = "environment VLLM_NIXL_SIDE_CHANNEL_PORT"
_SPECULATION = "argument --speculative-config"
_LOOPBACK = ("127.*", "localhost", "0.0.0.0", "::1", "::")
_ALIKE = (
    ("argument --dtype", "--dtype", "auto"),
    ("argument --kv-cache-dtype", "--kv-cache-dtype", "auto"),
    ("derived attention-backend", "--attention-backend", "not set"),
    ("argument --disable-hybrid-kv-cache-manager", "--disable-hybrid-kv-cache-manager", "not set"),
)
"""What NIXL's compatibility hash covers and arguments say: field, how it is called, what it is where it is left out.

Source: vLLM 0.27.1 wheel, nixl/metadata.py.
"""


def _halves(scene: Scene) -> list[Subject]:
    return [one for one in scene.engines() if is_paired(one)]


def pairs_of(scene: Scene) -> Iterator[tuple[Subject, Subject]]:
    """Yield each prefill half with each decode half of its model; of ``kv_both`` halves the first with the rest."""
    halves = _halves(scene)
    for one in halves:
        for other in halves:
            if one.role == "prefill" and other.role == "decode" and _belong(one, other):
                yield one, other
    plain = [one for one in halves if one.role not in ("prefill", "decode")]
    for other in plain[1:]:
        if _belong(plain[0], other):
            yield plain[0], other


def _belong(one: Subject, other: Subject) -> bool:
    names = [name_of(half.model_reference) for half in (one, other) if half.model_reference is not None]
    return one.group == other.group and len(set(names)) < 2


def _uses(subject: Subject, name: str) -> bool:
    return name in (connectors(subject) or ())


def announced_address(scene: Scene) -> Iterator[Hit]:
    """C-PD-001: each half of a NIXL pair over several hosts announces an address of its own."""
    for one in _halves(scene):
        address, across = look(one, _HOST), across_hosts(one)
        if not _uses(one, "NixlConnector") or address.state == "unknown" or across is False:
            continue
        loopback = address.is_known and any(fnmatchcase(str(address.value), name) for name in _LOOPBACK)
        if address.state == "absent" or loopback:
            severity = None if across else "info"
            message = (
                f"VLLM_NIXL_SIDE_CHANNEL_HOST is {address.shown()}; an address that the other host reaches is wanted"
            )
            yield Hit(address.place or one.place(), message, one, severity)


def distinct_ports(scene: Scene) -> Iterator[Hit]:
    """C-PD-002: two halves on one host have different base ports."""
    for one, other in pairs_of(scene):
        if not (_uses(one, "NixlConnector") and same_node(one, other)):
            continue
        if one.template is not None and one.template is not other.template and not one.template.host_network:
            continue
        ports = [known_text(half, _PORT) if is_set(half, _PORT) else "5600" for half in (one, other)]
        if None not in ports and ports[0] == ports[1]:
            message = f"both roles use side channel port {ports[0]} on one host"
            yield Hit(place_of(other, _PORT), message, other)


def same_build(scene: Scene) -> Iterator[Hit]:
    """C-PD-003: image, model, dtypes, attention backend and hybrid manager are the same on both halves of a pair."""
    yield from _other_models(scene)
    for one, other in pairs_of(scene):
        if not _uses(one, "NixlConnector"):
            continue
        images = [known_text(half, "image reference") for half in (one, other)]
        if images[0] is not None and images[1] is not None and _differ(images[0], images[1]):
            message = f"the image is {images[0]} on prefill and {images[1]} on decode"
            yield Hit(place_of(other, "image reference"), message, other)
        for field, called, default in _ALIKE:
            left, right = look(one, field), look(other, field)
            if "unknown" in (left.state, right.state):
                continue
            told = [value.shown() if value.is_known else default for value in (left, right)]
            if told[0] != told[1]:
                message = f"{called} is {left.shown()} on prefill and {right.shown()} on decode"
                yield Hit(right.place or other.place(), message, other)


def _differ(one: str, other: str) -> bool:
    """Return whether two image references name different builds: by digest or by tag; the registry tells nothing."""
    (name, _, digest), (other_name, _, other_digest) = one.partition("@"), other.partition("@")
    names = [each.rpartition("/")[2] for each in (name, other_name)]
    tags = [each.partition(":")[2] for each in names]
    if digest and other_digest and digest != other_digest:
        return True
    return names[0] != names[1] if all(tags) else not (digest and digest == other_digest) and names[0] != names[1]


def _other_models(scene: Scene) -> Iterator[Hit]:
    """Yield where the only prefill and the only decode half of a NIXL pair serve different models."""
    halves = [one for one in _halves(scene) if _uses(one, "NixlConnector")]
    if sorted(one.role for one in halves) != ["decode", "prefill"] or halves[0].group != halves[1].group:
        return
    one, other = sorted(halves, key=lambda half: half.role, reverse=True)
    names = [half.model_reference for half in (one, other)]
    if names[0] is not None and names[1] is not None and name_of(names[0]) != name_of(names[1]):
        message = f"the model is {names[0]} on prefill and {names[1]} on decode"
        yield Hit(place_of(other, "launch model"), message, other)


def expandable_segments(scene: Scene) -> Iterator[Hit]:
    """C-PD-006: no expandable segments beside a KV connector; those that copy are only refused, not corrupted."""
    for one in scene.engines():
        names, allocator = connectors(one), look(one, "derived allocator")
        if not names or not allocator.is_known or "expandable_segments:True" not in str(allocator.value):
            continue
        if flag(one, "--enable-cumem-allocator"):
            continue
        copies = not is_paired(one)
        told = (
            "; this connector copies and is not harmed by it, yet releases with the check refuse it" if copies else ""
        )
        message = f"expandable_segments:True together with {', '.join(names)}{told}"
        name = "environment PYTORCH_CUDA_ALLOC_CONF"
        field = name if is_set(one, name) else "environment PYTORCH_ALLOC_CONF"
        yield Hit(place_of(one, field), message, one, "warning" if copies else None)


def same_sizes(scene: Scene) -> Iterator[Hit]:
    """C-PD-007: both halves are split alike; with Mooncake one tensor-parallel size divides the other."""
    for one, other in pairs_of(scene):
        sizes = [count(half, "--tensor-parallel-size", 1) for half in (one, other)]
        if not sizes[0] or not sizes[1] or sizes[0] == sizes[1]:
            continue
        divides = max(sizes[0], sizes[1]) % min(sizes[0], sizes[1]) == 0
        severity = "info" if _uses(one, "MooncakeConnector") and divides else None
        message = f"--tensor-parallel-size is {sizes[0]} on prefill and {sizes[1]} on decode"
        yield Hit(place_of(other, "argument --tensor-parallel-size"), message, other, severity)


def failure_policy(scene: Scene) -> Iterator[Hit]:
    """C-PD-013: a lost transfer fails. Left out it is the release's default, which was not always that."""
    for one in _halves(scene):
        config = transfer(one) or {}
        policy = config.get("kv_load_failure_policy")
        if policy != "fail":
            message = f"kv_load_failure_policy is {policy if isinstance(policy, str) else 'not set'}; fail is wanted"
            severity = "info" if policy is None else None
            yield Hit(place_of(one, "argument --kv-transfer-config"), message, one, severity)


def devices_and_locks(scene: Scene) -> Iterator[Hit]:
    """C-PD-018: the pod of a half has an RDMA device and may lock memory."""
    for one in _halves(scene):
        if one.document is None or across_hosts(one) is not True or not _wants_rdma(one):
            continue
        missing = []
        if rdma_visible(one) is False:
            missing.append("an RDMA device")
        if not _may_lock(one):
            missing.append("the capability IPC_LOCK")
        if missing:
            yield Hit(place_of(one, "container securityContext"), f"the pod lacks {' and '.join(missing)}", one)


def _wants_rdma(subject: Subject) -> bool:
    extra = (transfer(subject) or {}).get("kv_connector_extra_config")
    tcp = isinstance(extra, dict) and extra.get("mooncake_protocol") == "tcp"
    known = {"NixlConnector", "NixlPushConnector", "MooncakeConnector"}
    return not tcp and bool(known & set(connectors(subject) or ()))


def _may_lock(subject: Subject) -> bool:
    privileged = look(subject, "container securityContext.privileged")
    added = look(subject, "container securityContext.capabilities.add")
    capabilities = added.value if added.is_known and isinstance(added.value, list | tuple) else ()
    return privileged.value is True or bool({"IPC_LOCK", "CAP_IPC_LOCK", "ALL"} & {str(one) for one in capabilities})


def same_speculation(scene: Scene) -> Iterator[Hit]:
    """C-SPC-009: both halves speculate alike, or neither does."""
    for one, other in pairs_of(scene):
        left, right = look(one, _SPECULATION), look(other, _SPECULATION)
        if "unknown" in (left.state, right.state):
            continue
        if speculates(one) is not speculates(other) or left.value != right.value:
            message = f"speculation on prefill: {left.shown()}; on decode: {right.shown()}"
            place = right.place if right.is_known or not left.is_known else left.place
            yield Hit(place or other.place(), message, other)


def same_layers(scene: Scene) -> Iterator[Hit]:
    """C-SPC-010: with NIXL a draft stands on both sides or on none."""
    for one, other in pairs_of(scene):
        if _uses(one, "NixlConnector") and speculates(one) is not speculates(other):
            half = one if speculates(one) else other
            yield Hit(place_of(half, _SPECULATION), "speculation on one role of a NIXL pair only", half)
