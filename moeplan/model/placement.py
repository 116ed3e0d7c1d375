"""Where a deployment puts tensors and KV cache: bytes a rank, with how surely each figure is known."""

from __future__ import annotations

import attrs

from moeplan.model.fields import choice, integer, nested, sequence, text
from moeplan.model.plugin import FactSource

__all__ = ["Figure", "Placement", "RolePlacement"]


@attrs.frozen
class Figure:
    """One quantity: ``exact`` (read from the checkpoint), ``calculated`` (from a stated rule), ``estimated``, or
    ``unknown`` with value None; ``statement`` says the rule or why it is not known."""

    value: int | None = integer(optional=True)
    certainty: str = choice("exact", "calculated", "estimated", "unknown")
    statement: str = text()
    sources: tuple[FactSource, ...] = sequence(FactSource, default=())


@attrs.frozen(kw_only=True)
class RolePlacement:
    """One role's ranks; all figures are of the rank that carries most.

    Bytes are integers. ``kv_tokens`` is what the KV pool of one replica holds, ``concurrent_requests`` how many
    requests of the workload's length (input and output tokens) that is.
    """

    role: str = text(max_length=64)
    ranks: int = integer(ge=1)
    weight_bytes: Figure = nested(Figure)
    draft_bytes: Figure = nested(Figure)
    device_bytes: Figure = nested(Figure)
    budget_bytes: Figure = nested(Figure)
    kv_bytes_per_token: Figure = nested(Figure)
    kv_tokens: Figure = nested(Figure)
    concurrent_requests: Figure = nested(Figure)
    replicated: tuple[str, ...] = text(many=True, default=())


@attrs.frozen
class Placement:
    """The placement of each role."""

    roles: tuple[RolePlacement, ...] = sequence(RolePlacement, min_items=1)
