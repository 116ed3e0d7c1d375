"""Files that hold a tool's own figures and no raw data: claims, which satisfy no criterion.

Source: files of vLLM's ``benchmark_serving.py`` of 2025, of the forks that InferenceX runs, of InferenceX itself (2026;
seconds, no unit in the names), and the summaries of SGLang 0.5.23, guidellm 0.8, aiperf 0.13 and inference-perf 0.7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.importers.guidellm_claims import read_claims as read_guidellm
from moeplan.importers.tool_files import BENCHMARK_SERVING, VLLM_BENCH, tool_of
from moeplan.importers.tool_lines import at_line, parse_tool_lines
from moeplan.importers.tool_values import list_at
from moeplan.model.evidence import Claim, Collector, Interval, ReportedSummary
from moeplan.model.finding import Finding
from moeplan.wire.observation import MadeObservation, ObservationContext, SideFile, make_observation

__all__ = ["IMPORTER_VERSION", "Reported", "ReportedFile", "import_reported", "record_reported"]

IMPORTER_VERSION = "1.0.0"
"""Changes when the same file gives another record."""

_FORMATS = {
    VLLM_BENCH: "vllm-bench",
    BENCHMARK_SERVING: "benchmark-serving",
    "SGLang bench_serving": "sglang-bench",
    "guidellm": "guidellm",
    "guidellm 0.3 or older": "guidellm",
    "InferenceX aggregate": "inferencex-aggregate",
    "InferenceX runner summary": "inferencex-runner",
    "aiperf summary": "aiperf",
    "inference-perf summary": "inference-perf",
    "lm-evaluation-harness results": "lm-eval",
}
_RAW = ("ttfts", "itls", "errors")
"""Lists of ``vllm bench serve`` and ``bench_serving`` that make a file raw data."""
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.,%|+-]*:?", re.ASCII)
"""Keys that name a figure; what holds addresses, paths or device names has other characters."""
_ADDRESS = re.compile(r"://|@|\b\d{1,3}(?:\.\d{1,3}){3}\b", re.ASCII)
_MOST_CLAIMS = 1000
_MOST_NAME = 100
_MOST_DEPTH = 8
_MOST_DIGITS = 64


@attrs.frozen
class Reported:
    """One run's figures, and what a person should know about them."""

    payload: ReportedSummary
    findings: tuple[Finding, ...]


@attrs.frozen
class ReportedFile:
    """A tool's summary as it was given, and what it does not hold.

    Attributes:
        name: the file's name, for people.
        data: its bytes.
        interval: whole seconds UTC that enclose the runs.
        tool_version: the tool's version, where it is known.
        enclosed: whether the file lies beside the record; else it is named by digest alone.
    """

    name: str
    data: bytes
    interval: Interval
    tool_version: str | None = None
    enclosed: bool = False


def record_reported(
    file: ReportedFile, context: ObservationContext
) -> tuple[tuple[MadeObservation, ...], tuple[Finding, ...]]:
    """Return one ``reported_summary`` record for each run in a summary, with all findings. Pure.

    Raises:
        InputError: as :func:`import_reported`, or two runs of a file that report the same.
    """
    made: list[MadeObservation] = []
    findings: list[Finding] = []
    for number, run in enumerate(import_reported(file.data), 1):
        form = run.payload.format
        side = SideFile("tool_output", "tool-output.json", file.data, "json", "application/json", file.enclosed)
        collector = Collector(form, file.tool_version, "reported", IMPORTER_VERSION)
        one = make_observation(
            run.payload, {}, context=context, collector=collector, interval=file.interval, side_files=(side,)
        )
        if any(one.digest == other.digest for other in made):
            raise InputError(Issue(f"line {number}", "record_repeated", "the same figures again", "each run once"))
        made.append(one)
        findings += [attrs.evolve(finding, where=f"run {number}") for finding in run.findings]
    return tuple(made), tuple(findings)


def import_reported(data: bytes) -> tuple[Reported, ...]:
    """Return the figures of every run in a tool's summary. Pure.

    Args:
        data: the file's bytes: one JSON object, or one a line.

    Raises:
        InputError: ``foreign_file`` where no tool is known by it, ``raw_data_present`` where it holds raw data and is
            to be imported as such, ``no_claim`` where it holds no figure.
    """
    made: list[Reported] = []
    for place, document in parse_tool_lines(data):
        try:
            made += _reported(document)
        except InputError as error:
            raise InputError(*(at_line(issue, place) for issue in error.issues)) from None
    return tuple(made)


def _reported(document: dict[str, Any]) -> Iterator[Reported]:
    tool = tool_of(document)
    if tool is None:
        message, expected = "not a summary of a tool that is known here", ", ".join(sorted(set(_FORMATS.values())))
        raise InputError(Issue("$", "foreign_file", message, expected))
    form = _FORMATS[tool]
    if all(type(document.get(key)) is list for key in _RAW):
        old = form in ("vllm-bench", "benchmark-serving") and "latencies" not in document
        raise _raw_present("$.ttfts", "benchmark-serving" if old else form)
    if tool == "guidellm":
        for number, benchmark in enumerate(list_at(document, "benchmarks", "$")):
            yield _guidellm(document, benchmark, f"$.benchmarks[{number}]")
        return
    claims = tuple(_leaves(_figures(document, form), "", 0))
    model = _text(document.get("model_id") or document.get("model"))
    cap = document.get("max_concurrency") or document.get("conc") or document.get("users")
    yield _made(form, model, cap, claims, tuple(_findings(document)))


def _figures(document: dict[str, Any], form: str) -> dict[str, Any]:
    """Return the part of a summary that holds figures of the run, and not of its settings or its hosts."""
    if form == "aiperf":
        return {key: value for key, value in document.items() if type(value) is dict and "unit" in value}
    return {"results": document["results"]} if form == "lm-eval" else document


def _guidellm(document: dict[str, Any], benchmark: Any, path: str) -> Reported:
    if type(benchmark) is not dict:
        raise InputError(Issue(path, "invalid_value", "value refused", "a JSON object", type(benchmark).__name__))
    listed = benchmark.get("requests")
    if type(listed) is dict and any(listed.get(status) for status in ("successful", "errored", "incomplete")):
        raise _raw_present(f"{path}.requests", "guidellm")
    config = benchmark.get("config")
    backend = config.get("backend") if type(config) is dict else None
    arguments = document.get("args")
    model = backend.get("model") if type(backend) is dict else None
    model = model or (arguments.get("model") if type(arguments) is dict else None)
    return _made("guidellm", _text(model), None, read_guidellm(benchmark, path), ())


def _raw_present(path: str, form: str) -> InputError:
    message = "the file holds the raw data of each request"
    return InputError(Issue(path, "raw_data_present", message, None, None, f"import it as '{form}'"))


def _made(form: str, model: str | None, cap: Any, claims: tuple[Claim, ...], findings: tuple[Finding, ...]) -> Reported:
    if not claims:
        raise InputError(Issue("$", "no_claim", "the file holds no figure", "one or more numbers"))
    cap = cap if type(cap) is int and cap >= 1 else None
    if len(claims) > _MOST_CLAIMS:
        expected = f"at most {_MOST_CLAIMS} figures"
        raise InputError(Issue("$", "too_many", "more figures than a summary has", expected, str(len(claims))))
    message = f"{len(claims)} figures of the tool's own and no raw data: they are claims and satisfy no criterion"
    only = Finding("aggregate_only", "warning", message, None)
    return Reported(ReportedSummary(format=form, model=model, concurrency=cap, claims=claims), (only, *findings))


def _leaves(value: Any, name: str, depth: int) -> Iterator[Claim]:
    """Yield every number under its dotted name, in name order; lists are no summary and are left out."""
    if type(value) is dict and depth <= _MOST_DEPTH:
        for key in sorted(key for key in value if _KEY.fullmatch(key)):
            yield from _leaves(value[key], f"{name}.{key}" if name else key, depth + 1)
    elif type(value) in (int, Decimal) and len(str(value)) <= _MOST_DIGITS and len(name) <= _MOST_NAME:
        yield Claim(name, str(value))


def _findings(document: dict[str, Any]) -> Iterator[Finding]:
    asked = document.get("num_prompts", document.get("num_requests_total"))
    done = document.get("completed", document.get("num_requests_successful"))
    if type(asked) is int and type(done) is int and done < asked:
        message = f"the figures are those of {done} of {asked} requests; the others failed or were left out"
        yield Finding("requests_left_out", "warning", message, None)
    elif type(asked) is int and type(done) is int and "failed" not in document:
        message = f"the tool reports {done} of {asked} requests as successes and does not say which streams were whole"
        yield Finding("completion_not_shown", "warning", message, None)


def _text(value: Any) -> str | None:
    """Return a model's name; of a path on the tool's machine the last part alone."""
    if type(value) is not str or not value.isprintable() or _ADDRESS.search(value):
        return None
    name = value.rstrip("/").rsplit("/", 1)[-1] if value.startswith(("/", "~", ".")) else value
    return name if 0 < len(name) <= 200 else None
