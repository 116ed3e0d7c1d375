"""The trials in one tool's files are one run: records, run manifest and attachments, as bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from moeplan.digest import digest_bytes
from moeplan.errors import InputError, Issue, escape
from moeplan.evaluation.trials import counter_differences
from moeplan.importers.given import GivenFile
from moeplan.importers.prometheus import counters_between, read_snapshot
from moeplan.importers.table import Importer
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.model.deployment import Deployment
from moeplan.model.evidence import (
    Attachment,
    Collector,
    EngineCounters,
    EvidenceRecord,
    RunManifest,
    RunTrial,
    ServingTrial,
    TrialRef,
)
from moeplan.model.finding import Finding
from moeplan.units import format_instant
from moeplan.wire.documents import dump_document, identify
from moeplan.wire.tables import dump_chunk_gaps, dump_requests

__all__ = ["GivenFile", "ImportedRecord", "ImportedRun", "RunInputs", "import_run", "plain_name", "run_name"]

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
        commit_only: name the tool's file and the scrapes by digest, without enclosing them.
        summaries: the tool's own summaries: all of its one file, or one for each file.
    """

    plan: str
    deployment: Deployment
    trial: TrialInputs
    commit_only: bool = False
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
class ImportedRun:
    """A run, ready to be written: ``files`` holds every document and attachment by path."""

    manifest_path: str
    manifest: RunManifest
    records: tuple[ImportedRecord, ...]
    files: Mapping[str, bytes | GivenFile]
    findings: tuple[Finding, ...]


@attrs.frozen
class _Scrapes:
    """The engine's counters around one trial."""

    before: GivenFile
    after: GivenFile
    started: int | None
    model: str
    counters: EngineCounters


def run_name(tool_files: Sequence[GivenFile]) -> str:
    """Return ``run-`` and 12 hex digits of the SHA-256 over the files' digests in order, one a line."""
    lines = "".join(file.digest + "\n" for file in tool_files)
    return "run-" + hashlib.sha256(lines.encode()).hexdigest()[:12]


def import_run(
    importer: Importer, tool_files: Sequence[GivenFile], metrics: Sequence[GivenFile], inputs: RunInputs
) -> ImportedRun:
    """Return the run whose trials are those in ``tool_files``, in order. Pure: no path, no clock.

    Args:
        importer: reads one file, which may hold several trials.
        tool_files: the tool's files as they lie.
        metrics: none, or the engine's ``/metrics`` before the first trial and after each.
        inputs: what was stated.

    Raises:
        InputError: a file or scrape is malformed, given twice, or of a trial of another size; ``counter_reset``.
    """
    read = _read(importer, tool_files, inputs)
    _require_scrapes(len(read), metrics)
    run = run_name(tool_files)
    files: dict[str, bytes | GivenFile] = {}
    findings: list[Finding] = []
    records: list[ImportedRecord] = []
    enclosed: dict[str, str] = {}
    for number, (file, trial) in enumerate(read, 1):
        scrapes = _scrapes(metrics[number - 1], metrics[number], trial.model) if metrics else None
        prefix = f"attachments/{run}/trial-{number}-"
        # The trials of one file share its one copy, which has the first one's number.
        tool_path = enclosed.setdefault(file.digest, f"{prefix}tool-output.{importer.ending}")
        summaries = _summaries_of(file, tool_files, inputs)
        attachments = _attachments(prefix, tool_path, trial, (file, *summaries), scrapes, inputs.commit_only, files)
        with _naming(file):
            record = _record(importer, TrialRef(run, number), trial, scrapes, attachments, inputs)
        path = f"evidence/{run}-trial-{number}.json"
        files[path] = document = dump_document(record)
        counters = scrapes.counters if scrapes else None
        records.append(ImportedRecord(path, digest_bytes(document), record, trial, counters))
        remarks = (*trial.findings, *_counter_findings(trial, record), *_model_findings(trial, scrapes))
        findings += [_placed(finding, number) for finding in remarks]
    _require_alike([file for file, _ in read], records)
    manifest = _manifest(run, records, inputs)
    manifest_path = f"evidence/{run}.json"
    files[manifest_path] = dump_document(manifest)
    return ImportedRun(manifest_path, manifest, tuple(records), files, tuple(findings))


@contextmanager
def _naming(file: GivenFile) -> Iterator[None]:
    """Name the file in whatever error is raised about it."""
    try:
        yield
    except InputError as error:
        error.source = escape(file.name)
        raise


def _read(
    importer: Importer, tool_files: Sequence[GivenFile], inputs: RunInputs
) -> list[tuple[GivenFile, ImportedTrial]]:
    """Return every trial with the file it is in, in order."""
    _require_files(tool_files)
    made = []
    for file in tool_files:
        given = tuple(summary.data for summary in _summaries_of(file, tool_files, inputs))
        stated = attrs.evolve(inputs.trial, summaries=given)
        with _naming(file), file.opened() as stream:
            read = importer.read(stream if importer.streams else stream.read(), stated)
        made += [(file, trial) for trial in read]
    return made


def _summaries_of(file: GivenFile, tool_files: Sequence[GivenFile], inputs: RunInputs) -> tuple[GivenFile, ...]:
    """Return the tool's own summaries of one file: all that were given where it is the only one, else its own."""
    given = inputs.summaries
    if not given or len(tool_files) == 1:
        return given
    if len(given) != len(tool_files):
        expected, got = f"{len(tool_files)}: one for each file, in their order", f"{len(given)} files"
        raise InputError(Issue("--summary", "summary_count", "wrong number of summaries", expected, got))
    place = next(place for place, each in enumerate(tool_files) if each is file)
    return (given[place],)


def _require_files(tool_files: Sequence[GivenFile]) -> None:
    if not tool_files:
        raise InputError(Issue("FILE", "no_trial", "no file given", "one file a trial"))
    seen: dict[str, str] = {}
    for file in tool_files:
        if file.digest in seen:
            message = f"the same file as {escape(seen[file.digest])}"
            raise InputError(Issue("$", "duplicate_trial", message, "each trial once"), source=escape(file.name))
        seen[file.digest] = file.name


def _require_scrapes(trials: int, metrics: Sequence[GivenFile]) -> None:
    if metrics and len(metrics) != trials + 1:
        expected, got = f"{trials + 1}: one before, and one after each trial", f"{len(metrics)} files"
        raise InputError(Issue("--metrics", "metrics_count", "wrong number of scrapes", expected, got))


def _require_alike(tool_files: Sequence[GivenFile], records: Sequence[ImportedRecord]) -> None:
    first = records[0].trial
    for file, record in zip(tool_files, records, strict=True):
        trial = record.trial
        if len(trial.requests) != len(first.requests):
            message, step = "another number of requests than the first trial", "import it as a run of its own"
            expected, got = str(len(first.requests)), str(len(trial.requests))
            raise InputError(
                Issue("$.num_prompts", "trials_differ", message, expected, got, step), source=escape(file.name)
            )
        if (trial.model, trial.endpoint, trial.concurrency) != (first.model, first.endpoint, first.concurrency):
            message, step = (
                "another model, endpoint or concurrency than the first trial",
                "import it as a run of its own",
            )
            raise InputError(Issue("$", "trials_differ", message, "the same", None, step), source=escape(file.name))


def _scrapes(before: GivenFile, after: GivenFile, model: str) -> _Scrapes:
    with _naming(before):
        first = read_snapshot(before.data, model)
    with _naming(after):
        last = read_snapshot(after.data, model)
        return _Scrapes(before, after, first.started, last.model, counters_between(first, last))


def _attachments(
    prefix: str,
    tool_path: str,
    trial: ImportedTrial,
    given_files: tuple[GivenFile, ...],
    scrapes: _Scrapes | None,
    commit_only: bool,
    files: dict[str, bytes | GivenFile],
) -> tuple[Attachment, ...]:
    """Return the trial's attachments, and put those that are enclosed into ``files``."""
    tables = {
        "requests": (f"{prefix}requests.parquet", GivenFile("requests.parquet", dump_requests(trial.requests))),
        "chunk_gaps": (
            f"{prefix}chunk-gaps.parquet",
            GivenFile("chunk-gaps.parquet", dump_chunk_gaps(trial.chunk_gaps)),
        ),
    }
    file, *summaries = given_files
    given = {"tool_output": (tool_path, file)}
    for number, summary in enumerate(summaries, 1):
        given[f"tool_summary {number}"] = (f"{prefix}tool-summary-{number}.json", summary)
    if scrapes is not None:
        given["metrics_before"] = (f"{prefix}metrics-before.prom", scrapes.before)
        given["metrics_after"] = (f"{prefix}metrics-after.prom", scrapes.after)
    made = []
    for role, (path, file) in (tables | given).items():
        enclosed = None if commit_only and role in given else path
        if enclosed is not None:
            files[enclosed] = file.content()
        media_type = _MEDIA_TYPES[path.rsplit(".", 1)[1]]
        made.append(Attachment(role.split()[0], enclosed, plain_name(file.name), media_type, file.size, file.digest))
    return tuple(made)


def plain_name(name: str) -> str:
    """Return a file's name as the record can hold it: printable, at most 200 characters."""
    return "".join(c if c.isprintable() else "_" for c in name)[-200:] or "unnamed"


def _record(
    importer: Importer,
    ref: TrialRef,
    trial: ImportedTrial,
    scrapes: _Scrapes | None,
    attachments: tuple[Attachment, ...],
    inputs: RunInputs,
) -> EvidenceRecord:
    stated = inputs.trial
    payload = ServingTrial(
        trial=ref,
        endpoint=trial.endpoint,
        requested_input_tokens=stated.requested_input_tokens,
        requested_output_tokens=stated.requested_output_tokens,
        declared_concurrency=trial.concurrency,
        ignore_eos=stated.ignore_eos,
        warmup_requests=_warmup_requests(trial, stated),
        warmup_input_tokens=trial.warmup_input_tokens,
        warmup_output_tokens=trial.warmup_output_tokens,
        request_count=len(trial.requests),
        duration_ns=trial.duration_ns,
        engine_counters=scrapes.counters if scrapes else None,
        claims=trial.claims,
        schedule=trial.schedule,
    )
    record = EvidenceRecord(
        type=payload.type,
        plan=inputs.plan,
        deployment=inputs.deployment,
        collector=Collector(importer.tool, trial.tool_version or stated.tool_version, importer.tool, importer.version),
        interval=trial.interval,
        engine_start=format_instant(scrapes.started) if scrapes and scrapes.started is not None else None,
        payload=payload,
        attachments=attachments,
    )
    faults = tuple(record.faults())
    if faults:
        raise InputError(*faults)
    return record


def _warmup_requests(trial: ImportedTrial, stated: TrialInputs) -> int | None:
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
        named, asked = escape(scrapes.model, 100), escape(trial.model, 100)
        message = f"the engine's counters are those of {named}, the tool asked for {asked}; check that it is an alias"
        yield Finding("model_name_differs", "warning", message, None)


def _placed(finding: Finding, number: int) -> Finding:
    where = f"trial {number}" if finding.where is None else f"trial {number}, {finding.where}"
    return attrs.evolve(finding, where=where)


def _manifest(run: str, records: Sequence[ImportedRecord], inputs: RunInputs) -> RunManifest:
    stated, first = inputs.trial, records[0].trial
    return RunManifest(
        run=run,
        plan=inputs.plan,
        deployment=identify(inputs.deployment),
        announced=False,
        state="closed",
        planned_trials=len(records),
        planned_requests=len(first.requests),
        requested_input_tokens=stated.requested_input_tokens,
        requested_output_tokens=stated.requested_output_tokens,
        declared_concurrency=first.concurrency,
        warmup_requests=_warmup_requests(first, stated),
        trials=tuple(
            RunTrial(
                number,
                "complete",
                item.digest,
                tuple(attachment.digest for attachment in item.record.attachments),
            )
            for number, item in enumerate(records, 1)
        ),
    )
