"""One observation as files: its record, its raw tables as Parquet, what lies beside them, and a run's manifest.

Pure: no path, no clock. Importers and collectors both end here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from moeplan.digest import digest_bytes
from moeplan.errors import InputError, Issue
from moeplan.model.deployment import Deployment
from moeplan.model.evidence import ATTACHMENT_ROLES, Attachment, Collector, EvidenceRecord, Interval
from moeplan.model.run_manifest import RunManifest, RunObservation
from moeplan.units import NS_PER_S, ceil_div, format_instant, parse_instant
from moeplan.wire.closed_table import TableSchema, dump_table
from moeplan.wire.documents import dump_document, identify
from moeplan.wire.series import EXPERTS, QUALITY, SERIES, TENSORS
from moeplan.wire.tables import REQUESTS

__all__ = [
    "MadeObservation",
    "ObservationContext",
    "SideFile",
    "enclosing_interval",
    "made_run",
    "make_observation",
    "printable_name",
]

_LONGEST_NS = 10 * 366 * 86_400 * NS_PER_S
_LAST_NS = parse_instant("9999-01-01T00:00:00Z") * NS_PER_S
_PARQUET = "application/vnd.apache.parquet"
_SCHEMAS: Mapping[str, TableSchema[Any]] = {
    "series": SERIES,
    "experts": EXPERTS,
    "tensors": TENSORS,
    "quality": QUALITY,
    "requests": REQUESTS,
}


@attrs.frozen
class ObservationContext:
    """What holds for every record of one command: the plan's digest, and the deployment that was looked at."""

    plan: str
    deployment: Deployment


@attrs.frozen
class SideFile:
    """A file beside the tables: the tool's output, a log, a scrape.

    Attributes:
        role: one of ``ATTACHMENT_ROLES`` that is no raw table.
        name: its name as it was given, for people.
        data: its bytes.
        ending: the ending of the enclosed copy: ``txt``, ``json``, ``log`` …
        media_type: its media type.
        enclosed: False names it by digest alone.
    """

    role: str
    name: str
    data: bytes
    ending: str = "txt"
    media_type: str = "text/plain"
    enclosed: bool = True


@attrs.frozen
class MadeObservation:
    """A record ready to be written: ``files`` holds it and its attachments by path."""

    path: str
    digest: str
    record: EvidenceRecord
    files: Mapping[str, bytes]

    def listed(self) -> RunObservation:
        """Return the record as a run's manifest lists it."""
        return RunObservation(self.record.type, self.digest, tuple(part.digest for part in self.record.attachments))


def enclosing_interval(first_ns: int, last_ns: int) -> tuple[Interval, int]:
    """Return whole seconds that enclose two instants (ns since the epoch), and the start in ns since the epoch.

    A raw time is an instant less that start.

    Raises:
        InputError: before 1970 or after 9998, or longer than ten years.
    """
    if not 0 <= first_ns <= last_ns < _LAST_NS or last_ns - first_ns > _LONGEST_NS:
        message, expected = "its times cannot be of one observation", "at most ten years, of 1970 to 9998"
        raise InputError(Issue("$.interval", "times_implausible", message, expected))
    start = first_ns // NS_PER_S
    end = max(ceil_div(last_ns, NS_PER_S), start + 1)
    return Interval(format_instant(start), format_instant(end)), start * NS_PER_S


def make_observation(
    payload: Any,
    tables: Mapping[str, Any],
    *,
    context: ObservationContext,
    collector: Collector,
    interval: Interval,
    engine_start: str | None = None,
    side_files: Sequence[SideFile] = (),
) -> MadeObservation:
    """Return one observation's record and attachments as bytes by path.

    Records are named by what they hold, ``evidence/<type>-<12 hex digits>.json``: those of several commands lie in
    one directory without a clash.

    Args:
        payload: one of the payload classes of ``moeplan.model.observations``; its ``row_count`` is the caller's.
        tables: the raw tables by role: ``series``, ``experts``, ``tensors``, ``quality``, ``requests``.
        context: plan and deployment.
        collector: what observed it.
        interval: whole seconds that enclose it; raw times begin at its start.
        engine_start: the instant the engine started, where known.
        side_files: files beside the tables.

    Raises:
        InputError: record and tables contradict each other, or the record itself.
    """
    dumped = [(role, dump_table(_SCHEMAS[role], table)) for role, table in tables.items()]
    given = [*(SideFile(role, f"{role}.parquet", data, "parquet", _PARQUET) for role, data in dumped), *side_files]
    name = _record_name(payload, interval, context, given)
    files: dict[str, bytes] = {}
    attachments = []
    for number, file in enumerate(given):
        assert file.role in ATTACHMENT_ROLES
        stem = f"{file.role.replace('_', '-')}" + (f"-{number}" if _repeated(given, file.role) else "")
        path = f"attachments/{name}/{stem}.{file.ending}" if file.enclosed else None
        if path is not None:
            files[path] = file.data
        digest, size = digest_bytes(file.data), len(file.data)
        attachments.append(Attachment(file.role, path, printable_name(file.name), file.media_type, size, digest))
    record = EvidenceRecord(
        type=payload.type,
        plan=context.plan,
        deployment=context.deployment,
        collector=collector,
        interval=interval,
        engine_start=engine_start,
        payload=payload,
        attachments=tuple(attachments),
    )
    faults = tuple(record.faults())
    if faults:
        raise InputError(*faults)
    path = f"evidence/{name}.json"
    files[path] = dump_document(record)
    return MadeObservation(path, digest_bytes(files[path]), record, files)


def made_run(
    run: str,
    context: ObservationContext,
    observations: Sequence[RunObservation],
    *,
    announced: bool,
    state: str = "closed",
) -> tuple[RunManifest, str, bytes]:
    """Return the manifest of a run of observations without trials, its path in the directory, and its bytes."""
    manifest = RunManifest(
        run=run,
        plan=context.plan,
        deployment=identify(context.deployment),
        announced=announced,
        state=state,
        planned_trials=0,
        planned_requests=None,
        requested_input_tokens=None,
        requested_output_tokens=None,
        declared_concurrency=None,
        warmup_requests=None,
        trials=(),
        observations=tuple(observations),
    )
    return manifest, f"evidence/{run}.json", dump_document(manifest)


def printable_name(name: str) -> str:
    """Return a file's name as a record can hold it: printable, at most 200 characters."""
    return "".join(c if c.isprintable() else "_" for c in name)[-200:] or "unnamed"


def _repeated(given: Sequence[SideFile], role: str) -> bool:
    return sum(file.role == role for file in given) > 1


def _record_name(payload: Any, interval: Interval, context: ObservationContext, given: Sequence[SideFile]) -> str:
    lines = [context.plan, identify(context.deployment), interval.start, interval.end, identify(payload)]
    lines += [f"{file.role} {digest_bytes(file.data)}" for file in given]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return f"{payload.type.replace('_', '-')}-{digest[:12]}"
