"""The trials in one tool's files are one run: records, run manifest and attachments, as bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.given import GivenFile
from moeplan.importers.table import Importer
from moeplan.importers.trial import ImportedTrial
from moeplan.importers.trial_record import (
    ImportedRecord,
    MadeTrial,
    RunInputs,
    make_trial,
    naming,
    raw_tables,
    tool_path,
    warmup_requests,
)
from moeplan.model.evidence import TrialRef
from moeplan.model.finding import Finding
from moeplan.model.run_manifest import RunManifest, RunTrial
from moeplan.wire.documents import dump_document, identify

__all__ = [
    "GivenFile",
    "ImportedRecord",
    "ImportedRun",
    "MadeTrial",
    "RunInputs",
    "import_run",
    "import_trial",
    "run_name",
]


@attrs.frozen
class ImportedRun:
    """A run, ready to be written: ``files`` holds every document and attachment by path."""

    manifest_path: str
    manifest: RunManifest
    records: tuple[ImportedRecord, ...]
    files: Mapping[str, bytes | GivenFile]
    findings: tuple[Finding, ...]


def run_name(tool_files: Sequence[GivenFile], stage: int | None = None) -> str:
    """Return ``run-`` and 12 hex digits of the SHA-256 over the files' digests in order, one a line.

    A stage that is imported alone is a run of its own: ``stage N`` is one more line.
    """
    lines = "".join(file.digest + "\n" for file in tool_files) + ("" if stage is None else f"stage {stage}\n")
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
    run = run_name(tool_files, inputs.trial.stage)
    files: dict[str, bytes | GivenFile] = {}
    findings: list[Finding] = []
    records: list[ImportedRecord] = []
    enclosed: dict[str, str] = {}
    for number, (file, trial, tables) in enumerate(read, 1):
        around = (metrics[number - 1], metrics[number]) if metrics else None
        # The trials of one file share its one copy, which has the first one's number.
        copy = enclosed.setdefault(file.digest, tool_path(importer, TrialRef(run, number)))
        summaries = _summaries_of(file, tool_files, inputs)
        made = make_trial(importer, TrialRef(run, number), trial, copy, (file, *summaries), around, inputs, tables)
        files |= made.files
        findings += made.findings
        records.append(made.record)
    _require_alike([file for file, *_ in read], records)
    manifest = _manifest(run, records, inputs)
    manifest_path = f"evidence/{run}.json"
    files[manifest_path] = dump_document(manifest)
    return ImportedRun(manifest_path, manifest, tuple(records), files, tuple(findings))


def import_trial(
    importer: Importer,
    file: GivenFile,
    around: tuple[GivenFile, GivenFile] | None,
    ref: TrialRef,
    inputs: RunInputs,
) -> MadeTrial:
    """Return the one trial in ``file`` as a trial of a run that goes on. Pure: no path, no clock.

    Args:
        importer: reads the file.
        file: the tool's file.
        around: the engine's ``/metrics`` before and after the trial, where there are any.
        ref: which trial of which run it is.
        inputs: what was stated.

    Raises:
        InputError: a file is malformed, or holds several trials; ``counter_reset``.
    """
    read = _read(importer, (file,), inputs)
    if len(read) != 1:
        message = "a file of several trials in a run that makes one file a trial"
        raise InputError(Issue("$", "several_trials", message, "1", str(len(read))), source=escape(file.name))
    _, trial, tables = read[0]
    return make_trial(importer, ref, trial, tool_path(importer, ref), (file, *inputs.summaries), around, inputs, tables)


def _read(
    importer: Importer, tool_files: Sequence[GivenFile], inputs: RunInputs
) -> list[tuple[GivenFile, ImportedTrial, Mapping[str, GivenFile]]]:
    """Return every trial with the file it is in and its raw tables, in order.

    Files are hashed and tables written in a second thread while the next file is read.
    """
    if not tool_files:
        raise InputError(Issue("FILE", "no_trial", "no file given", "one file a trial"))
    made: list[tuple[GivenFile, ImportedTrial, Future[dict[str, GivenFile]]]] = []
    with ThreadPoolExecutor(1) as beside:
        for file in tool_files:
            beside.submit(getattr, file, "digest")
            given = tuple(summary.data for summary in _summaries_of(file, tool_files, inputs))
            stated = attrs.evolve(inputs.trial, summaries=given)
            with naming(file), file.opened() as stream:
                read = importer.read(stream if importer.streams else stream.read(), stated)
            made += [(file, trial, beside.submit(raw_tables, trial)) for trial in read]
        _require_once(tool_files)
        return [(file, trial, tables.result()) for file, trial, tables in made]


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


def _require_once(tool_files: Sequence[GivenFile]) -> None:
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
    step = "import it as a run of its own; of several in one file, one by one with --stage"
    for file, record in zip(tool_files, records, strict=True):
        trial = record.trial
        if len(trial.requests) != len(first.requests):
            message, at = "another number of requests than the first trial", "$.num_prompts"
            expected, got = str(len(first.requests)), str(len(trial.requests))
        elif (trial.model, trial.endpoint, trial.concurrency) != (first.model, first.endpoint, first.concurrency):
            message, at = "another model, endpoint or concurrency than the first trial", "$"
            expected, got = "the same", None
        else:
            continue
        raise InputError(Issue(at, "trials_differ", message, expected, got, step), source=escape(file.name))


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
        warmup_requests=warmup_requests(first, stated),
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
