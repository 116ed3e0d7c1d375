"""The auditor's policy: what is expected, whose signature counts for what, how strongly evidence must be bound."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.errors import Issue
from moeplan.model.fields import (
    boolean,
    choice,
    const,
    digest,
    identifier,
    instant,
    integer,
    nested,
    sequence,
    text,
)
from moeplan.model.plan import BINDINGS, GATE_IDS

__all__ = ["SIGNER_ROLES", "Expectations", "LeastBinding", "Policy", "Signer", "Waiver", "WorkloadExpectation"]

SIGNER_ROLES = ("runner", "packer", "verifier")
"""runner: measured the evidence; packer: packed the bundle; verifier: issued a verdict."""


@attrs.frozen
class WorkloadExpectation:
    """The workload the auditor wants judged: at least these tokens and concurrency, at most these targets.

    ``availability`` of None accepts either.
    """

    input_tokens_at_least: int = integer(ge=1)
    output_tokens_at_least: int = integer(ge=1)
    concurrency_at_least: int = integer(ge=1)
    target_ttft_ms_at_most: int = integer(ge=1)
    target_inter_token_ms_at_most: int = integer(ge=1)
    prefix_cache_share_basis_points_at_most: int | None = integer(le=10_000, optional=True)
    availability: str | None = choice("single", "ha", optional=True)


@attrs.frozen
class Expectations:
    """The subject the auditor expects; without it nothing is ready."""

    checkpoint_roots: tuple[str, ...] = digest(many=True)
    models: tuple[str, ...] = identifier(many=True)
    hardware: tuple[str, ...] = identifier(many=True)
    accelerators_at_most: int | None = integer(ge=1, optional=True)
    reserve_basis_points_at_least: int = integer(le=9999)
    runtimes: tuple[str, ...] = digest(many=True)
    registries: tuple[str, ...] = digest(many=True)
    workload: WorkloadExpectation = nested(WorkloadExpectation)


@attrs.frozen
class Signer:
    """One signing key the auditor trusts, and for what. ``fingerprint``: SHA-256 of the DER SubjectPublicKeyInfo."""

    id: str = identifier()
    roles: tuple[str, ...] = choice(*SIGNER_ROLES, many=True)
    fingerprint: str = digest()
    public_key: str = text(
        pattern=r"^-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/=\n]+\n-----END PUBLIC KEY-----\n$", max_length=4096
    )


@attrs.frozen
class LeastBinding:
    """The least binding evidence of a gate must have; the stronger of this and the plan's holds."""

    gate: str = choice(*GATE_IDS)
    binding: str = choice(*BINDINGS)


@attrs.frozen
class Waiver:
    """A criterion the auditor accepts without proof until a date; the underlying outcome stays visible."""

    criterion: str = identifier()
    reason: str = text()
    expires: str = instant()


@attrs.frozen
class Policy:
    """What an auditor expects and accepts."""

    kind: str = const("policy")
    schema_version: str = const("1.0.0")
    expects: Expectations | None = nested(Expectations, optional=True)
    signers: tuple[Signer, ...] = sequence(Signer)
    least_binding: tuple[LeastBinding, ...] = sequence(LeastBinding)
    waivers: tuple[Waiver, ...] = sequence(Waiver)
    test_keys: bool = boolean()

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: repeats of signers, keys, gates or waivers."""
        for name, keys in (
            ("signers", [signer.id for signer in self.signers]),
            ("signers", [signer.fingerprint for signer in self.signers]),
            ("leastBinding", [item.gate for item in self.least_binding]),
            ("waivers", [item.criterion for item in self.waivers]),
        ):
            seen: set[str] = set()
            for index, key in enumerate(keys):
                if key in seen:
                    yield Issue(f"$.{name}[{index}]", "duplicate_name", f"{key!r} given twice", "each once")
                seen.add(key)

    def binding_for(self, gate: str) -> str:
        """Return the least binding this policy demands of a gate's evidence (``declared`` where it says nothing)."""
        return next((item.binding for item in self.least_binding if item.gate == gate), BINDINGS[0])
