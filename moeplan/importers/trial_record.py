"""One trial as evidence: its record, its raw tables and the files beside them, as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import attrs

from moeplan.digest import digest_bytes
from moeplan.errors import InputError, Issue, escape
from moeplan.evaluation.trials import counter_differences
from moeplan.importers.enclosing import neutral_name
from moeplan.importers.given import GivenFile, PiecedFile
from moeplan.importers.prometheus import counters_between, read_snapshot
from moeplan.importers.shown import endpoint_word, model_word, version_word
from moeplan.importers.table import Importer
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.model.deployment import Deployment
from moeplan.model.evidence import (
    Attachment,
    Collector,
    EngineCounters,
    EvidenceRecord,
    ServingTrial,
    TrialRef,
)
from moeplan.model.finding import Finding
from moeplan.model.run_manifest import RunTrial
from moeplan.units import format_instant
from moeplan.wire.chunk_gaps import chunk_gap_pieces
from moeplan.wire.documents import dump_document
from moeplan.wire.tables import dump_requests

__all__ = [
    "ImportedRecord",
    "MadeTrial",
    "RunInputs",
    "make_trial",
    "naming",
    "raw_tables",
    "tool_path",
    "warmup_requests",
]

_MEDIA_TYPES = {
    "json": "application/json",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
    "prom": "text/plain",
}


@attrs.frozen
class RunInputs:
    """What holds for every trial of the run.

    Attributes:
        plan: the plan's digest.
        deployment: what served.
        trial: what was stated of each trial.
        enclose: roles of the given files that are enclosed; the others are named by digest alone.
        summaries: the tool's own summaries: all of its one file, or one for each file.
    """

    plan: str
    deployment: Deployment
    trial: TrialInputs
    enclose: frozenset[str] = frozenset()
    summaries: tuple[GivenFile, ...] = ()


@attrs.frozen
class ImportedRecord:
    """One trial's record, where it goes, its identity, and the trial it was made of."""

    path: str
    digest: str
    record: EvidenceRecord
    trial: ImportedTrial
    counters: EngineCounters | None


@attrs.frozen
class MadeTrial:
    """One trial of a run, ready to be written and listed."""

    record: ImportedRecord
    files: Mapping[str, bytes | GivenFile]
    findings: tuple[Finding, ...]

    def listed(self) -> RunTrial:
        """Return the trial as its run's manifest lists it."""
        digests = tuple(attachment.digest for attachment in self.record.record.attachments)
        payload = self.record.record.payload
        assert isinstance(payload, ServingTrial)
        return RunTrial(payload.trial.number, "complete", self.record.digest, digests)


@attrs.frozen
class _Scrapes:
    """The engine's counters around one trial."""

    before: GivenFile
    after: GivenFile
    started: int | None
    model: str
    counters: EngineCounters


def tool_path(importer: Importer, ref: TrialRef) -> str:
    """Return where a copy of the tool's file lies."""
    return f"attachments/{ref.run}/trial-{ref.number}-tool-output.{importer.ending}"


def raw_tables(trial: ImportedTrial) -> dict[str, GivenFile]:
    """Return a trial's raw tables as files, by role, with their digests."""
    made = {
        "requests": GivenFile("requests.parquet", dump_requests(trial.requests)),
        "chunk_gaps": PiecedFile("chunk-gaps.parquet", chunk_gap_pieces(trial.chunk_gaps)),
    }
    assert all(file.digest for file in made.values())
    return made


def make_trial(
    importer: Importer,
    ref: TrialRef,
    trial: ImportedTrial,
    tool_path: str,
    given_files: tuple[GivenFile, ...],
    around: tuple[GivenFile, GivenFile] | None,
    inputs: RunInputs,
    tables: Mapping[str, GivenFile] | None = None,
) -> MadeTrial:
    """Return one trial as evidence; the arguments are those of ``import_trial``, and where the tool's file goes.

    ``tables`` are its :func:`raw_tables`, where they have been made already.

    Raises:
        InputError: record, tables and scrapes contradict each other.
    """
    files: dict[str, bytes | GivenFile] = {}
    scrapes = _scrapes(*around, trial.model) if around else None
    prefix = f"attachments/{ref.run}/trial-{ref.number}-"
    made = raw_tables(trial) if tables is None else tables
    attachments = _attachments(prefix, tool_path, made, given_files, scrapes, inputs.enclose, files)
    with naming(given_files[0]):
        record = _record(importer, ref, trial, scrapes, attachments, inputs)
    path = f"evidence/{ref.run}-trial-{ref.number}.json"
    files[path] = document = dump_document(record)
    counters = scrapes.counters if scrapes else None
    remarks = (*trial.findings, *_counter_findings(trial, record), *_model_findings(trial, scrapes))
    findings = tuple(_placed(finding, ref.number) for finding in remarks)
    return MadeTrial(ImportedRecord(path, digest_bytes(document), record, trial, counters), files, findings)


@contextmanager
def naming(file: GivenFile) -> Iterator[None]:
    """Name the file in whatever error is raised about it."""
    try:
        yield
    except InputError as error:
        error.source = escape(file.name)
        raise


def _scrapes(before: GivenFile, after: GivenFile, model: str) -> _Scrapes:
    with naming(before):
        first = read_snapshot(before.data, model)
    with naming(after):
        last = read_snapshot(after.data, model)
        return _Scrapes(before, after, first.started, last.model, counters_between(first, last))


def _attachments(
    prefix: str,
    tool_path: str,
    raw: Mapping[str, GivenFile],
    given_files: tuple[GivenFile, ...],
    scrapes: _Scrapes | None,
    enclose: frozenset[str],
    files: dict[str, bytes | GivenFile],
) -> tuple[Attachment, ...]:
    """Return the trial's attachments, and put those that are enclosed into ``files``."""
    tables = {role: (f"{prefix}{file.name}", file) for role, file in raw.items()}
    file, *summaries = given_files
    given = {"tool_output": (tool_path, file)}
    for number, summary in enumerate(summaries, 1):
        given[f"tool_summary {number}"] = (f"{prefix}tool-summary-{number}.json", summary)
    if scrapes is not None:
        given["metrics_before"] = (f"{prefix}metrics-before.prom", scrapes.before)
        given["metrics_after"] = (f"{prefix}metrics-after.prom", scrapes.after)
    made = []
    for key, (path, file) in (tables | given).items():
        role, _, counted = key.partition(" ")
        ending = path.rsplit(".", 1)[1]
        enclosed = path if key in tables or role in enclose else None
        if enclosed is not None:
            files[enclosed] = file.content()
        name = neutral_name(role, ending, int(counted) if counted else None)
        made.append(Attachment(role, enclosed, name, _MEDIA_TYPES[ending], file.size, file.digest))
    return tuple(made)


def _record(
    importer: Importer,
    ref: TrialRef,
    trial: ImportedTrial,
    scrapes: _Scrapes | None,
    attachments: tuple[Attachment, ...],
    inputs: RunInputs,
) -> EvidenceRecord:
    stated = inputs.trial
    if trial.endpoint != stated.endpoint and not endpoint_word(trial.endpoint):
        message = "the file's word for what was called is no plain one: it may be an address"
        raise InputError(Issue("--endpoint", "not_stated", message, "the option, with the name records are to have"))
    payload = ServingTrial(
        trial=ref,
        endpoint=trial.endpoint,
        requested_input_tokens=stated.requested_input_tokens,
        requested_output_tokens=stated.requested_output_tokens,
        declared_concurrency=trial.concurrency,
        ignore_eos=stated.ignore_eos,
        warmup_requests=warmup_requests(trial, stated),
        warmup_input_tokens=trial.warmup_input_tokens,
        warmup_output_tokens=trial.warmup_output_tokens,
        request_count=len(trial.requests),
        duration_ns=trial.duration_ns,
        engine_counters=scrapes.counters if scrapes else None,
        claims=trial.claims,
        schedule=trial.schedule,
        path=trial.path or stated.path,
        client=trial.client,
    )
    record = EvidenceRecord(
        type=payload.type,
        plan=inputs.plan,
        deployment=inputs.deployment,
        collector=Collector(
            importer.tool, version_word(trial.tool_version) or stated.tool_version, importer.tool, importer.version
        ),
        interval=trial.interval,
        engine_start=format_instant(scrapes.started) if scrapes and scrapes.started is not None else None,
        payload=payload,
        attachments=attachments,
    )
    faults = tuple(record.faults())
    if faults:
        raise InputError(*faults)
    return record


def warmup_requests(trial: ImportedTrial, stated: TrialInputs) -> int | None:
    """Return how many requests went before the measured ones: the file's word, else the stated one."""
    return stated.warmup_requests if trial.warmup_requests is None else trial.warmup_requests


def _counter_findings(trial: ImportedTrial, record: EvidenceRecord) -> Iterator[Finding]:
    assert isinstance(record.payload, ServingTrial)
    differences, reason = counter_differences(trial.requests, record.payload)
    if differences is None:
        message = {
            "no_engine_counters": "no --metrics given: nothing shows that the engine and the client tell one story",
            "warmup_undeclared": "the warm-up is not stated: engine's and client's counts cannot be compared",
        }.get(reason or "", f"the engine's counters cannot be compared: {reason}")
        yield Finding("counters_not_compared", "warning", message, None)
    elif differences:
        message = f"{differences} of requests, prompt tokens and generated tokens differ between engine and client"
        yield Finding("counters_differ", "warning", f"{message} plus warm-up", None)
    else:
        yield Finding(
            "counters_agree", "info", "requests, prompt and generated tokens of engine and client agree", None
        )


def _model_findings(trial: ImportedTrial, scrapes: _Scrapes | None) -> Iterator[Finding]:
    """Say where the engine names another model than the tool asked for: an alias, or another engine's page."""
    if scrapes is not None and scrapes.model not in ("", trial.model):
        named, asked = model_word(scrapes.model), model_word(trial.model)
        message = f"the engine's counters are those of {named}, the tool asked for {asked}; check that it is an alias"
        yield Finding("model_name_differs", "warning", message, None)


def _placed(finding: Finding, number: int) -> Finding:
    where = f"trial {number}" if finding.where is None else f"trial {number}, {finding.where}"
    return attrs.evolve(finding, where=where)
