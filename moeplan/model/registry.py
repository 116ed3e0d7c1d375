"""The registry: sourced claims about models and accelerators, and reviewed compatibility records."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.errors import Issue
from moeplan.model.fields import choice, const, identifier, integer, nested, sequence, text
from moeplan.units import BYTES_PER_GB

__all__ = [
    "Accelerator",
    "CompatibilityRecord",
    "Defaults",
    "KnownInteger",
    "KnownText",
    "Model",
    "ModelClaims",
    "Provenance",
    "Registry",
    "Source",
    "Unknown",
]

REVISION_PATTERN = r"^([0-9a-f]{40}|sha256:[0-9a-f]{64})$"
"""An immutable revision: a Git commit, or the root digest of a checkpoint that lies in no hub."""


@attrs.frozen
class Source:
    """A document that claims rest on; ``url`` is null where it has no public address."""

    id: str = identifier()
    url: str | None = text(pattern=r"^https://[!-~]+$", max_length=1024, optional=True)
    publisher: str = text(max_length=200)
    retrieved_at: str | None = text(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", optional=True)


@attrs.frozen
class Provenance:
    """Where in a source a claim stands."""

    source: str = identifier()
    locator: str | None = text(max_length=1024, optional=True)


@attrs.frozen
class KnownInteger:
    """A quantity that a source states."""

    status: str = const("known")
    value: int = integer()
    provenance: tuple[Provenance, ...] = sequence(Provenance, min_items=1)


@attrs.frozen
class KnownText:
    """A property that a source states in words."""

    status: str = const("known")
    value: str = text(max_length=200)
    provenance: tuple[Provenance, ...] = sequence(Provenance, min_items=1)


@attrs.frozen
class Unknown:
    """A claim that no source settles, with the reason."""

    status: str = const("unknown")
    reason: str = text(max_length=1024)
    provenance: tuple[Provenance, ...] = sequence(Provenance)


@attrs.frozen
class ModelClaims:
    """What is claimed of a model; bytes are tensor bytes of the pinned revision."""

    total_parameters: KnownInteger | Unknown = nested((KnownInteger, Unknown))
    active_parameters: KnownInteger | Unknown = nested((KnownInteger, Unknown))
    artifact_tensor_bytes: KnownInteger | Unknown = nested((KnownInteger, Unknown))
    context_tokens: KnownInteger | Unknown = nested((KnownInteger, Unknown))
    routed_experts: KnownInteger | Unknown = nested((KnownInteger, Unknown))
    experts_per_token: KnownInteger | Unknown = nested((KnownInteger, Unknown))
    native_weight_format: KnownText | Unknown = nested((KnownText, Unknown))
    license: KnownText | Unknown = nested((KnownText, Unknown))


@attrs.frozen
class Model:
    """One model at one immutable revision."""

    id: str = identifier()
    name: str = text(max_length=200)
    aliases: tuple[str, ...] = text(max_length=200, many=True)
    provider: str = text(max_length=200)
    repository: str = text(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", max_length=200)
    revision: str = text(pattern=REVISION_PATTERN, max_length=71)
    manifest_url: str | None = text(pattern=r"^https://[!-~]+$", max_length=1024, optional=True)
    claims: ModelClaims = nested(ModelClaims)


@attrs.frozen
class Accelerator:
    """One accelerator; memory in decimal gigabytes a device, as advertised."""

    id: str = identifier()
    name: str = text(max_length=200)
    vendor: str = text(max_length=200)
    aliases: tuple[str, ...] = text(max_length=200, many=True)
    memory_gigabytes: KnownInteger | Unknown = nested((KnownInteger, Unknown))

    @property
    def memory_bytes(self) -> int | None:
        """Bytes of one device as advertised (decimal GB × 10^9), or None where unknown. Exact."""
        claim = self.memory_gigabytes
        return claim.value * BYTES_PER_GB if isinstance(claim, KnownInteger) else None


@attrs.frozen
class CompatibilityRecord:
    """A reviewed statement that a runtime does, or does not, serve a model on an accelerator."""

    id: str = identifier()
    model: str = identifier()
    hardware: str = identifier()
    runtime: str = identifier()
    status: str = choice("supported", "unsupported")
    statement: str = text(max_length=1024)
    provenance: tuple[Provenance, ...] = sequence(Provenance, min_items=1)


@attrs.frozen
class Defaults:
    """Conventions a plan uses where the caller names none."""

    capacity_unit: str = choice("decimal-gigabytes")
    reserve_basis_points: int = integer(le=9999)
    accelerators_per_node: int = integer(ge=1, le=100_000)


@attrs.frozen
class Registry:
    """Sources, models, hardware and compatibility records; each number is a sourced claim."""

    kind: str = const("registry")
    schema_version: str = const("1.0.0")
    registry_version: str = text(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$", max_length=64)
    defaults: Defaults = nested(Defaults)
    sources: tuple[Source, ...] = sequence(Source)
    models: tuple[Model, ...] = sequence(Model)
    hardware: tuple[Accelerator, ...] = sequence(Accelerator)
    compatibility: tuple[CompatibilityRecord, ...] = sequence(CompatibilityRecord)

    def faults(self) -> Iterator[Issue]:
        """Yield what no single field shows: repeated ids and names, and references that lead nowhere."""
        yield from _repeated("sources", [[s.id] for s in self.sources])
        yield from _repeated("models", [[m.id, m.name, m.repository, *m.aliases] for m in self.models])
        yield from _repeated("hardware", [[h.id, h.name, *h.aliases] for h in self.hardware])
        yield from _repeated("compatibility", [[c.id] for c in self.compatibility])
        yield from self._dangling()

    def _dangling(self) -> Iterator[Issue]:
        sources = {source.id for source in self.sources}
        for path, provenance in self._provenances():
            for index, item in enumerate(provenance):
                if item.source not in sources:
                    yield _lost(f"{path}[{index}].source", item.source, "a source's id")
        models, hardware = {m.id for m in self.models}, {h.id for h in self.hardware}
        seen: set[tuple[str, str, str]] = set()
        for index, record in enumerate(self.compatibility):
            at = f"$.compatibility[{index}]"
            if record.model not in models:
                yield _lost(f"{at}.model", record.model, "a model's id")
            if record.hardware not in hardware:
                yield _lost(f"{at}.hardware", record.hardware, "an accelerator's id")
            key = (record.model, record.hardware, record.runtime)
            if key in seen:
                yield Issue(at, "duplicate_record", "a second record for this model, hardware and runtime", "one")
            seen.add(key)

    def _provenances(self) -> Iterator[tuple[str, tuple[Provenance, ...]]]:
        from moeplan.model.fields import camel

        for index, model in enumerate(self.models):
            for field in attrs.fields(ModelClaims):
                claim = getattr(model.claims, field.name)
                yield f"$.models[{index}].claims.{camel(field.name)}.provenance", claim.provenance
        for index, item in enumerate(self.hardware):
            yield f"$.hardware[{index}].memoryGigabytes.provenance", item.memory_gigabytes.provenance
        for index, record in enumerate(self.compatibility):
            yield f"$.compatibility[{index}].provenance", record.provenance


def _lost(path: str, got: str, expected: str) -> Issue:
    return Issue(path, "unknown_reference", "refers to nothing in this registry", expected, got)


def _repeated(name: str, groups: list[list[str]]) -> Iterator[Issue]:
    owner: dict[str, int] = {}
    for index, names in enumerate(groups):
        for word in {name.casefold() for name in names}:
            if word in owner and owner[word] != index:
                yield Issue(
                    f"$.{name}[{index}]",
                    "duplicate_name",
                    f"{word!r} already names {name}[{owner[word]}]",
                    "unique names",
                )
            owner.setdefault(word, index)
