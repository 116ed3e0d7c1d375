"""What plugins know of preflight: what an operator runs before a deployment, and what a tool's file says of hosts."""

from __future__ import annotations

import attrs

from moeplan.model.fields import choice, identifier, integer, sequence, text
from moeplan.model.plugin import PLUGIN_PATTERN, PROFILE_PATTERN, FactSource, PluginFinding
from moeplan.model.rendering import MAX_FILE_CHARACTERS
from moeplan.model.tables import PREFLIGHT_STATES, PREFLIGHT_UNITS
from moeplan.units import MAX_SAFE_INTEGER

__all__ = [
    "HOST_TIME_PATTERN",
    "Comparison",
    "ComparisonValue",
    "ImportFile",
    "ImportRequest",
    "Imported",
    "ImportedClaim",
    "ImportedHost",
    "ImportedRow",
    "ImportedSection",
    "ImporterInfo",
    "PreflightCheck",
]

HOST_TIME_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$"
"""A host's local time without a zone, as tools write it."""
_BODY = r"^[^\u0000]*$"
_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?$"


@attrs.frozen(kw_only=True)
class PreflightCheck:
    """One thing an operator does before a deployment.

    Attributes:
        id: name of the check, each once in a plugin.
        title: one line.
        commands: what to run, in order, where something can be run.
        how: what to do, and what stands in the commands for something only the site knows.
        proof: what shows that it is in order.
        deadline_seconds: after how long without an answer it has failed.
        profiles: ids of the profiles it is for; none: all.
        sources: who says so.
    """

    id: str = identifier()
    title: str = text(max_length=200)
    commands: tuple[str, ...] = text(pattern=_BODY, max_length=8192, many=True, default=())
    how: str = text()
    proof: str = text()
    deadline_seconds: int = integer(ge=1, le=86_400)
    profiles: tuple[str, ...] = text(pattern=PROFILE_PATTERN, max_length=129, many=True, default=())
    sources: tuple[FactSource, ...] = sequence(FactSource, min_items=1)


@attrs.frozen
class ImporterInfo:
    """A format that a plugin reads.

    ``origin`` is the distribution that defines the format: plugins built on one library share it, and the first of them
    in the order of names is asked. One format of two origins is a collision.
    """

    format: str = identifier()
    origin: str = text(pattern=PLUGIN_PATTERN, max_length=64)
    title: str = text(max_length=200)
    evidence_type: str = choice("preflight")


@attrs.frozen
class ImportFile:
    """A tool's file as it was given: its name and its whole text."""

    name: str = text(max_length=4096)
    text: str = text(pattern=_BODY, min_length=0, max_length=MAX_FILE_CHARACTERS)


@attrs.frozen
class ImportRequest:
    """Files of one format that belong together: one for each host."""

    format: str = identifier()
    files: tuple[ImportFile, ...] = sequence(ImportFile, min_items=1)


@attrs.frozen(kw_only=True)
class ImportedRow:
    """One raw value as the tool measured it; a row of the ``preflight`` table.

    ``item`` is what was measured (``gpu3``, ``node-b -> node-a rdma``) and ``value`` an exact integer in ``unit``; it
    is 0 where ``state`` is not ``measured``.
    """

    host: str = text(max_length=200)
    probe: str = text(max_length=64)
    item: str = text(max_length=400)
    metric: str = identifier()
    unit: str = choice(*PREFLIGHT_UNITS)
    value: int = integer(ge=-MAX_SAFE_INTEGER)
    state: str = choice(*PREFLIGHT_STATES)


@attrs.frozen
class ImportedClaim:
    """A figure that the tool reports of itself, as a decimal; it decides nothing."""

    name: str = text(max_length=100)
    value: str = text(pattern=_DECIMAL, max_length=64)


@attrs.frozen
class ImportedSection:
    """One probe of a host: the level the tool claims, and the level its raw values give.

    ``not_judged`` is neither good nor bad: it was skipped, or nothing is known of how to judge it.
    """

    name: str = text(max_length=64)
    claimed: str = choice("ok", "warning", "error", "not_judged")
    found: str = choice("ok", "warning", "error", "not_judged")


@attrs.frozen
class ImportedHost:
    """One host's file; ``generated`` is when it was written, in the host's local time."""

    host: str = text(max_length=200)
    file: str = text(max_length=4096)
    image: str | None = text(max_length=1024, optional=True)
    generated: str = text(pattern=HOST_TIME_PATTERN, max_length=19)
    sections: tuple[ImportedSection, ...] = sequence(ImportedSection)


@attrs.frozen
class ComparisonValue:
    """One side of a comparison: a host or a direction, and its value for people; None where it is not told."""

    subject: str = text(max_length=400)
    value: str | None = text(max_length=400, optional=True)


@attrs.frozen
class Comparison:
    """Hosts side by side. ``not_judged``: fewer than two values are there."""

    id: str = identifier()
    title: str = text(max_length=200)
    outcome: str = choice("same", "differs", "ok", "failed", "not_judged")
    values: tuple[ComparisonValue, ...] = sequence(ComparisonValue)


@attrs.frozen(kw_only=True)
class Imported:
    """What a plugin read in the files of one request."""

    hosts: tuple[ImportedHost, ...] = sequence(ImportedHost, default=())
    rows: tuple[ImportedRow, ...] = sequence(ImportedRow, default=())
    claims: tuple[ImportedClaim, ...] = sequence(ImportedClaim, default=())
    findings: tuple[PluginFinding, ...] = sequence(PluginFinding, default=())
    comparisons: tuple[Comparison, ...] = sequence(Comparison, default=())
