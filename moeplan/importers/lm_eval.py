"""lm-evaluation-harness: its results file and each task's samples -> one ``quality_result``, document by document.

Source: lm_eval 0.4.13, ``evaluator.py`` (samples: one line a document and filter, with each metric's value),
``loggers/evaluation_tracker.py`` (``task_hashes``: SHA-256 over the samples' hashes in order, which binds each samples
file to its task and shows one that is not whole) and ``api/metrics.py`` (``mean_stderr``).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.lm_eval_claims import result_findings
from moeplan.importers.shown import shown, version_word
from moeplan.importers.streamed_lines import at_line, read_objects
from moeplan.importers.tool_files import tool_of
from moeplan.importers.tool_json import parse_tool_json
from moeplan.importers.tool_values import object_at, seconds_at
from moeplan.model.evidence import Collector
from moeplan.model.fields import ID_PATTERN
from moeplan.model.finding import Finding
from moeplan.model.observations import QualityResult, QualityTask
from moeplan.model.series import QualityTable, quality_faults
from moeplan.units import MAX_SAFE_INTEGER, seconds_to_ns
from moeplan.wire.observation import MadeObservation, ObservationContext, SideFile, enclosing_interval, make_observation

__all__ = ["LM_EVAL_IMPORTER_VERSION", "LmEvalFile", "import_lm_eval"]

LM_EVAL_IMPORTER_VERSION = "1.0.0"
"""Changes when the same files give another record."""

_STEP = "run lm_eval with --output_path and --log_samples, and give the results file and every samples file"
_MOST_EPOCH_SECONDS = 2**33
_HASHES = ("doc_hash", "prompt_hash", "target_hash")
_ID_LENGTH = 128


@attrs.frozen
class LmEvalFile:
    """A file as it was given: its name, for people, and its bytes."""

    name: str
    data: bytes


@attrs.frozen
class _Samples:
    """One task's samples: of each measure, the documents and whether each was right."""

    task: str
    measures: Mapping[str, Mapping[int, int]]
    skipped: tuple[str, ...]


def import_lm_eval(
    files: Sequence[LmEvalFile], context: ObservationContext, *, enclose: frozenset[str] = frozenset()
) -> tuple[MadeObservation, tuple[Finding, ...]]:
    """Return the record of one run of the harness, and what does not fit its own figures.

    A measure is named as the harness names it: ``acc``, or with its filter ``exact_match.strict-match``. Only measures
    that are right or wrong for each document are taken. Task names are lower-cased. The harness's files are named by
    digest; they hold documents, prompts and answers and are enclosed only where asked for.

    Args:
        files: one results file and the samples file of each task, in any order.
        context: plan and deployment.
        enclose: roles of the harness's own files that are enclosed:
            ``tool_summary`` its results, ``tool_output`` its samples.

    Raises:
        InputError: no results or several, results without samples, samples of another run, or a file of another tool.
    """
    results_file, document = _results(files)
    others = [file for file in files if file is not results_file]
    if not others:
        raise InputError(
            Issue(
                "$", "raw_data_missing", "results without samples are claims alone", "each task's samples", None, _STEP
            ),
            source=escape(results_file.name),
        )
    samples = sorted((_samples(file, document) for file in others), key=lambda each: each.task)
    _require_each_once(samples, others)
    table, tasks = _table(samples)
    faults = tuple(quality_faults(table))
    if faults:
        raise InputError(*faults)
    interval, _ = enclosing_interval(*_span(document))
    version = document.get("lm_eval_version")
    made = make_observation(
        QualityResult(tasks=tasks, row_count=len(table)),
        {"quality": table},
        context=context,
        collector=Collector("lm-eval", version_word(str(version)), "lm-eval", LM_EVAL_IMPORTER_VERSION),
        interval=interval,
        side_files=[
            SideFile(
                "tool_summary", "results.json", results_file.data, "json", "application/json", "tool_summary" in enclose
            ),
            *(
                SideFile(
                    "tool_output",
                    f"samples-{number}.jsonl",
                    file.data,
                    "jsonl",
                    "application/jsonl",
                    "tool_output" in enclose,
                )
                for number, file in enumerate(others, 1)
            ),
        ],
    )
    counts = {each.task: each.measures for each in samples}
    findings = (*_skipped(samples, document), *result_findings(document, counts))
    return made, findings


def _results(files: Sequence[LmEvalFile]) -> tuple[LmEvalFile, dict[str, Any]]:
    """Return the one results file: a JSON object that is not a sample's."""
    found = []
    for file in files:
        try:
            document = parse_tool_json(file.data)
        except InputError:
            continue
        if type(document) is not dict or "doc_id" not in document:
            found.append((file, document))
    if len(found) != 1:
        message = "no results file" if not found else "more than one results file"
        raise InputError(Issue("FILE", "results_count", message, "one results file and its samples", None, _STEP))
    file, document = found[0]
    if tool_of(document) != "lm-evaluation-harness results":
        got = tool_of(document) or ("a list" if type(document) is list else "no file that is known here")
        raise InputError(
            Issue("$", "wrong_file", "not results of lm-evaluation-harness", "its results file", got, _STEP),
            source=escape(file.name),
        )
    if "lm_eval_version" not in document or type(document.get("task_hashes")) is not dict:
        message = "results without hashes of samples (lm_eval before 0.4.3, or without samples) are claims alone"
        raise InputError(
            Issue("$.task_hashes", "raw_data_missing", message, "lm_eval_version and task_hashes", None, _STEP),
            source=escape(file.name),
        )
    return file, document


def _samples(file: LmEvalFile, document: Mapping[str, Any]) -> _Samples:
    """Return one samples file's measures; its hash over all samples says which task it is of.

    Raises:
        InputError: a line that is no sample, or samples that are those of no task of the results.
    """
    digest = hashlib.sha256()
    measures: dict[str, dict[int, int]] = {}
    skipped: set[str] = set()
    try:
        for number, line in read_objects(file.data):
            digest.update("".join(str(line.get(key)) for key in _HASHES).encode())
            _take(line, number, measures, skipped)
        named = [task for task, told in document["task_hashes"].items() if told == digest.hexdigest()]
        if len(named) != 1:
            message = "samples of no task of these results: of another run, changed, or not whole"
            raise InputError(Issue("$", "samples_differ", message, "samples as their run wrote them", None, _STEP))
    except InputError as error:
        error.source = escape(file.name)
        raise
    if any(metric in measures for metric in skipped):
        measures = {metric: values for metric, values in measures.items() if metric not in skipped}
    return _Samples(_identifier(named[0]), measures, tuple(sorted(skipped)))


def _take(line: Mapping[str, Any], number: int, measures: dict[str, dict[int, int]], skipped: set[str]) -> None:
    document, metrics, kept = line.get("doc_id"), line.get("metrics"), line.get("filter")
    if (
        type(document) is not int
        or not 0 <= document <= MAX_SAFE_INTEGER
        or type(metrics) is not list
        or type(kept) is not str
    ):
        expected = "doc_id, filter and metrics"
        raise InputError(Issue(at_line(number), "wrong_file", "not a sample of lm-evaluation-harness", expected))
    for metric in metrics:
        value = line.get(metric) if type(metric) is str else None
        name = _identifier(str(metric) if kept == "none" else f"{metric}.{kept}")
        if type(value) not in (int, float, Decimal, bool) or value not in (0, 1):
            skipped.add(name)
            continue
        values = measures.setdefault(name, {})
        if document in values:
            path = at_line(number, "$.doc_id")
            raise InputError(Issue(path, "duplicate_document", "document given twice", "each once", str(document)))
        values[document] = int(value)


def _identifier(text: str) -> str:
    import re

    name = text.lower()
    if len(name) > _ID_LENGTH or not re.fullmatch(ID_PATTERN, name):
        expected = "letters, digits, '.', '_' and '-'"
        raise InputError(Issue("$", "invalid_name", "name that no record holds", expected, shown(text)))
    return name


def _require_each_once(samples: Sequence[_Samples], files: Sequence[LmEvalFile]) -> None:
    names = [each.task for each in samples]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(Issue("FILE", "duplicate_task", f"two samples files of task {twice}", "one a task"))
    if not any(each.measures for each in samples):
        message = f"no measure of {len(files)} samples files is right or wrong for each document"
        raise InputError(Issue("FILE", "no_measure", message, "a measure such as acc or exact_match"))


def _table(samples: Sequence[_Samples]) -> tuple[QualityTable, tuple[QualityTask, ...]]:
    rows = sorted(
        (each.task, metric, document, right)
        for each in samples
        for metric, values in each.measures.items()
        for document, right in values.items()
    )
    tasks = sorted(
        (each.task, metric, sum(values.values()), len(values))
        for each in samples
        for metric, values in each.measures.items()
    )
    table = QualityTable(
        task=tuple(row[0] for row in rows),
        metric=tuple(row[1] for row in rows),
        document=array("q", (row[2] for row in rows)),
        correct=array("q", (row[3] for row in rows)),
    )
    return table, tuple(QualityTask(*task) for task in tasks)


def _span(document: Mapping[str, Any]) -> tuple[int, int]:
    """Return start and end in ns since 1970; the harness writes its duration as text."""
    start = seconds_at(document.get("date"), "$.date", _MOST_EPOCH_SECONDS)
    text = document.get("total_evaluation_time_seconds")
    try:
        taken = Decimal(text) if type(text) is str and len(text) <= 40 else Decimal(-1)
    except ArithmeticError:
        taken = Decimal(-1)
    seconds = seconds_at(taken if taken.is_finite() else None, "$.total_evaluation_time_seconds")
    begun = int(start) * 10**9 + seconds_to_ns(start - int(start))
    return begun, begun + seconds_to_ns(seconds)


def _skipped(samples: Sequence[_Samples], document: Mapping[str, Any]) -> list[Finding]:
    made = []
    for each in samples:
        for metric in each.skipped:
            message = f"{metric} is not right or wrong for each document; it is left out"
            made.append(Finding("measure_not_binary", "info", message, each.task))
    given = {each.task for each in samples}
    missing = sorted(
        name for name in map(str.lower, object_at(dict(document), "task_hashes", "$")) if name not in given
    )
    if missing:
        shown = escape(", ".join(missing), 400)
        message = f"{len(missing)} tasks of the results have no samples file here, and no result in the record: {shown}"
        made.append(Finding("samples_missing", "warning", message, None))
    return made
