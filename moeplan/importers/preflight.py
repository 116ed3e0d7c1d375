"""A preflight that a plugin read: the rows as a closed table, and the evidence record beside it, as bytes."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import attrs

from moeplan.digest import digest_bytes
from moeplan.errors import InputError, Issue, escape
from moeplan.importers.enclosing import neutral_name
from moeplan.importers.given import GivenFile
from moeplan.importers.shown import shown
from moeplan.model.deployment import Deployment
from moeplan.model.evidence import Attachment, Claim, Collector, EvidenceRecord, Interval, Preflight, PreflightHost
from moeplan.model.preflight import Imported, ImportedHost, ImportedRow
from moeplan.model.tables import PreflightTable, preflight_faults
from moeplan.units import format_instant, parse_instant
from moeplan.version import VERSION
from moeplan.wire.documents import dump_document
from moeplan.wire.tables import dump_preflight

__all__ = ["ImportedPreflight", "PreflightInputs", "import_preflight", "preflight_table"]

_PARQUET, _JSON = "application/vnd.apache.parquet", "application/json"


@attrs.frozen
class PreflightInputs:
    """What the tool's files do not hold.

    Attributes:
        format: the format, as the plugin names it.
        plugin: the plugin that read the files.
        plugin_version: its version.
        plan: the plan's digest.
        deployment: what is to be deployed on these hosts; declared.
        started: instant before the first probe of any host began.
        utc_offset_seconds: seconds east of UTC of the hosts' clocks.
        enclose: roles of the given files that are enclosed; the others are named by digest alone.
        tool_version: the tool's version, where it is known.
    """

    format: str
    plugin: str
    plugin_version: str
    plan: str
    deployment: Deployment
    started: str
    utc_offset_seconds: int
    enclose: frozenset[str] = frozenset()
    tool_version: str | None = None


@attrs.frozen
class ImportedPreflight:
    """A record, ready to be written: ``files`` holds it and its attachments by path."""

    path: str
    digest: str
    record: EvidenceRecord
    files: Mapping[str, bytes]


def preflight_table(rows: Sequence[ImportedRow]) -> PreflightTable:
    """Return rows as the columns of a preflight table.

    Raises:
        InputError: a value that its unit does not allow.
    """
    table = PreflightTable(
        host=tuple(row.host for row in rows),
        probe=tuple(row.probe for row in rows),
        item=tuple(row.item for row in rows),
        metric=tuple(row.metric for row in rows),
        unit=tuple(row.unit for row in rows),
        value=array("q", (row.value for row in rows)),
        state=tuple(row.state for row in rows),
    )
    issues = tuple(preflight_faults(table))
    if issues:
        raise InputError(*issues)
    return table


def import_preflight(files: Sequence[GivenFile], imported: Imported, inputs: PreflightInputs) -> ImportedPreflight:
    """Return the record of one preflight. Pure: no path, no clock, no plugin.

    Args:
        files: the tool's files as they lie.
        imported: what the plugin read in them.
        inputs: what was stated.

    Raises:
        InputError: no host, a host whose file is older than ``started``, or rows that the table does not allow.
    """
    if not imported.hosts:
        raise InputError(Issue("FILE", "no_host", "the plugin found no host in the files", "one host a file"))
    name = _name(files)
    table = dump_preflight(preflight_table(imported.rows))
    path = f"attachments/{name}/preflight.parquet"
    made = {path: table}
    attachments = [_attachment("preflight", path, "preflight.parquet", _PARQUET, table)]
    for number, file in enumerate(files, 1):
        named = neutral_name("tool_output", "json", number)
        enclosed = f"attachments/{name}/{named}" if "tool_output" in inputs.enclose else None
        if enclosed is not None:
            made[enclosed] = file.data
        attachments.append(_attachment("tool_output", enclosed, named, _JSON, file.data))
    record = _record(imported, inputs, tuple(attachments))
    document = f"evidence/{name}.json"
    made[document] = dump_document(record)
    return ImportedPreflight(document, digest_bytes(made[document]), record, made)


def _name(files: Sequence[GivenFile]) -> str:
    lines = "".join(digest_bytes(file.data) + "\n" for file in files)
    return "preflight-" + hashlib.sha256(lines.encode()).hexdigest()[:12]


def _attachment(role: str, path: str | None, name: str, media_type: str, data: bytes) -> Attachment:
    return Attachment(role, path, name, media_type, len(data), digest_bytes(data))


def _record(imported: Imported, inputs: PreflightInputs, attachments: tuple[Attachment, ...]) -> EvidenceRecord:
    hosts = sorted(
        (PreflightHost(host.host, _instant(host, inputs.utc_offset_seconds)) for host in imported.hosts),
        key=lambda host: host.name,
    )
    first = min(hosts, key=lambda host: parse_instant(host.generated))
    if parse_instant(first.generated) < parse_instant(inputs.started):
        message = f"the file of {escape(first.name, 100)} was written before the preflight began: an older file?"
        step = "leave out the files of earlier runs, or correct --started or --utc-offset"
        raise InputError(Issue("--started", "older_file", message, inputs.started, first.generated, step))
    record = EvidenceRecord(
        type="preflight",
        plan=inputs.plan,
        deployment=inputs.deployment,
        collector=Collector(inputs.format, inputs.tool_version, inputs.format, VERSION),
        interval=Interval(inputs.started, max(host.generated for host in hosts)),
        engine_start=None,
        payload=Preflight(
            format=inputs.format,
            read_by=f"{inputs.plugin}@{inputs.plugin_version}",
            row_count=len(imported.rows),
            hosts=tuple(hosts),
            claims=tuple(Claim(claim.name, claim.value) for claim in imported.claims),
        ),
        attachments=attachments,
    )
    faults = tuple(record.faults())
    if faults:
        raise InputError(*faults)
    return record


def _instant(host: ImportedHost, offset: int) -> str:
    try:
        written = datetime.strptime(host.generated, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        return format_instant(int(written.timestamp()) - offset)
    except (ValueError, OverflowError, OSError):
        got = shown(host.generated)
        raise InputError(
            Issue("$.generated", "invalid_instant", "not a time", "YYYY-MM-DD HH:MM:SS", got), source=escape(host.file)
        ) from None
