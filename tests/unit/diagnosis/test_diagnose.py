"""What is counted and said; what must be there or not; patterns that would stall; what does not change the result."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import pytest

from moeplan.diagnosis import confirm
from moeplan.diagnosis.diagnose import diagnose
from moeplan.diagnosis.excerpts import EXCERPT_CHARACTERS, excerpt
from moeplan.diagnosis.lines import LINE_BYTES
from moeplan.diagnosis.result import Diagnosis
from moeplan.errors import InputError, StoreError
from moeplan.model.plugin import LogSignature
from tests.unit.diagnosis.made import signature


def of(text: str | bytes, *signatures: LogSignature) -> Diagnosis:
    return diagnose(io.BytesIO(text.encode() if isinstance(text, str) else text), signatures)


def test_a_finding_says_where_how_often_why_and_what_to_do() -> None:
    known = signature("T-1", "no remote engine", pattern=r"engine_id \d+")
    log = "start\nno remote engine, engine_id 7\nno remote engine\nno remote engine, engine_id 8\n"
    made = of(log, known)
    (finding,) = made.findings
    assert (finding.id, finding.count, finding.first_line) == ("T-1", 2, 2)
    assert finding.excerpt == "no remote engine, engine_id 7"
    assert (finding.cause, finding.remedy, finding.sources) == ("the cause", "the remedy", known.sources)
    assert (finding.severity, finding.expectation, finding.complete) == ("error", "informs", True)
    assert made.logs[0].lines == 4
    assert finding.evidence.log == made.logs[0].digest
    assert (finding.evidence.value, finding.evidence.comparator, finding.evidence.limit) == (2, None, None)
    assert made.outcome == "errors"


def test_signatures_of_one_id_make_one_finding_and_a_line_counts_once() -> None:
    known = (
        signature("T-1", "later text", severity="warning", cause="second"),
        signature("T-1", "early text", severity="info", cause="first"),
    )
    (finding,) = of("x\nearly text\nlater text and early text\nlater text\n", *known).findings
    assert (finding.count, finding.first_line, finding.cause, finding.severity) == (3, 2, "first", "warning")


def test_a_signature_that_plugins_share_is_looked_for_once() -> None:
    known = signature("T-1", "shared text")
    made = diagnose(io.BytesIO(b"shared text\n"), {"vllm-b": [known], "vllm-a": [known]})
    (finding,) = made.findings
    assert (finding.count, finding.plugin, finding.plugins) == (1, "vllm-a", ("vllm-a", "vllm-b"))
    assert made.signatures == 1


def test_the_log_that_a_finding_is_of_is_named(tmp_path: Path) -> None:
    for name, text in (("a.log", "fine\n"), ("b.log", "bad thing\n"), ("c.log", "x\nbad thing\n")):
        (tmp_path / name).write_text(text, "utf-8")
    logs = sorted(tmp_path.iterdir())
    made = diagnose(logs, [signature("T-1", "bad thing", expectation="must_be_zero")])
    assert [(Path(one.file).name, one.first_line) for one in made.findings] == [("b.log", 1), ("c.log", 2)]
    (row,) = made.expected
    assert (row.count, row.holds, Path(str(row.file)).name, row.first_line) == (2, False, "b.log", 1)
    assert diagnose(logs[0], [signature("T-1", "bad thing")]).outcome == "clear"


@pytest.mark.parametrize(
    ("expectation", "log", "severity", "count", "holds", "findings", "outcome"),
    [
        ("must_be_zero", "draft runs eagerly\n", "warning", 1, False, 1, "errors"),
        ("must_be_zero", "draft in a graph\n", "error", 0, True, 0, "clear"),
        ("must_be_present", "draft runs eagerly\n", "error", 1, True, 0, "clear"),
        ("must_be_present", "draft in a graph\n", "error", 0, False, 0, "clear"),
    ],
)
def test_what_must_be_there_or_not(
    expectation: str, log: str, severity: str, count: int, holds: bool, findings: int, outcome: str
) -> None:
    made = of(log, signature("T-1", "runs eagerly", expectation=expectation, severity=severity))
    (row,) = made.expected
    assert (row.expectation, row.count, row.holds) == (expectation, count, holds)
    assert len(made.findings) == findings
    assert made.outcome == outcome
    if findings:
        assert (made.findings[0].evidence.comparator, made.findings[0].evidence.limit) == ("eq", 0)


def test_where_nothing_can_be_judged() -> None:
    assert of("a line\n").outcome == "nothing_judged"
    assert of("", signature("T-1", "text")).outcome == "nothing_judged"
    assert of("a line\n", signature("T-1", "text", severity="info")).outcome == "clear"
    assert of("text\n", signature("T-1", "text", severity="warning")).outcome == "clear"


def test_the_gravest_comes_first() -> None:
    known = [signature(name, f"text {name}", severity=name) for name in ("info", "warning", "error")]
    found = of("text info\ntext warning\ntext error\n", *known).findings
    assert [one.severity for one in found] == ["error", "warning", "info"]


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[36m(EngineCore pid=1)\x1b[0m no remote \x1b[1mengine\x1b[0m",
        '{"no": "json"} no remote engine',
        json.dumps({"log": 'a "quoted" line: no remote engine\n', "stream": "stderr"}),
        "no remote engine\r",
        "\0 no remote engine \0",
        "2026-11-30T16:16:52.1Z stderr F no remote engine",
    ],
)
def test_lines_as_terminals_and_runtimes_write_them(line: str) -> None:
    (finding,) = of(f"\n{line}", signature("T-1", pattern=r"no remote engine(?: \x00)?$")).findings
    assert (finding.count, finding.first_line) == (1, 2)


def test_quotes_and_brackets_are_found_in_json_too() -> None:
    known = signature("T-1", pattern='^namespaces "infera" <none> not found$')
    assert of('{"log":"namespaces \\"infera\\" \\u003cnone\\u003e not found\\n"}\n', known).findings
    assert of('namespaces "infera" <none> not found\n', known).findings
    assert not of("namespaces 'infera' <none> not found\n", known).findings


def test_invalid_utf8_hides_nothing() -> None:
    (finding,) = of(
        b"\xff\xfdx \xc3 no peer \xe2\x82\n", signature("T-1", "no peer", pattern="^..x . no peer .$")
    ).findings
    assert finding.excerpt == "\ufffd\ufffdx \ufffd no peer \ufffd"


def test_of_a_very_long_line_the_beginning_is_looked_at() -> None:
    known = signature("T-1", "no peer")
    made = of(b"no peer" + b"x" * 5_000_000 + b"\nshort\n", known)
    assert (made.logs[0].lines, made.logs[0].cut_lines, made.findings[0].count) == (2, 1, 1)
    made = of(b"x" * LINE_BYTES + b"no peer\nno peer\n", known)
    assert (made.logs[0].cut_lines, made.findings[0].first_line) == (1, 2)


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(?:.*a){12}x", r"(?:a?){300}a{300}"])
def test_a_pattern_that_python_would_never_end_is_quick(pattern: str) -> None:
    began = time.process_time()
    made = of("a" * 20_000 + "!\n", signature("T-1", pattern=pattern), signature("T-2", "aaa!"))
    assert [one.id for one in made.findings if one.id == "T-2"] == ["T-2"]
    assert not made.failures
    assert time.process_time() - began < 10


@pytest.mark.parametrize("pattern", [r"(?=a)(a+)+$", r"(a+)+\1$"])
def test_a_pattern_that_only_python_can_search_is_given_up(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "BUDGET_US", 200_000)
    known = {"vllm-a": [signature("T-1", pattern=pattern, expectation="must_be_zero"), signature("T-2", "aaa!")]}
    made = diagnose(io.BytesIO(b"a" * 5000 + b"!\n"), known, versions={"vllm-a": "1.0"})
    (failure,) = made.failures
    assert (failure.plugin, failure.version, failure.code) == ("vllm-a", "1.0", "timed_out")
    assert failure.message.startswith("signature T-1: the pattern took more than")
    assert [one.id for one in made.findings] == ["T-2"]
    assert made.expected[0].holds is None
    assert made.signatures == 1


def test_patterns_that_only_python_can_search_are_searched() -> None:
    known = [
        signature("T-1", pattern=r"rank (?!0)\d+ died"),
        signature("T-2", pattern=r"(rank \d) .*\1"),
        signature("T-3", pattern=r"x{1100}"),
    ]
    log = "rank 0 died\nrank 3 died\nrank 3 waits for rank 3\n" + "x" * 1100 + "\n"
    assert {one.id: (one.count, one.first_line) for one in of(log, *known).findings} == {
        "T-1": (1, 2),
        "T-2": (1, 3),
        "T-3": (1, 4),
    }


@pytest.mark.parametrize("pattern", ["(", "(?u)x", "a" * 5 + "{99999999999999999999}"])
def test_a_pattern_that_does_not_compile_is_named(pattern: str) -> None:
    made = of("x\n", signature("T-1", pattern=pattern), signature("T-2", "x"))
    assert [(one.plugin, one.code) for one in made.failures] == [("caller", "invalid_pattern")]
    assert [one.id for one in made.findings] == ["T-2"]


def test_a_signature_with_nothing_to_look_for_is_named() -> None:
    assert [one.code for one in of("x\n", signature("T-1")).failures] == ["invalid_pattern"]


def test_many_signatures_are_all_found() -> None:
    known = [signature(f"T-{index}", f"text number {index} of very many") for index in range(3000)]
    log = "".join(f"a text number {index} of very many\n" for index in range(2999, -1, -1))
    found = {one.id: one.first_line for one in of(log, *known).findings}
    assert found == {f"T-{index}": 3000 - index for index in range(3000)}


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    log = io.BytesIO(b"line\n" * 100)
    diagnose(log, [signature()], progress=lambda opened, lines: told.append((opened.size, lines)), block_bytes=100)
    assert told[0] == (100, 20)
    assert told[-1] == (500, 100)


def test_no_log_and_standard_input_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no log"):
        diagnose([], [])
    with pytest.raises(InputError, match="named twice"):
        diagnose(["-", "-"], [])
    with pytest.raises(StoreError, match="is a directory"):
        diagnose([io.BytesIO(b"not read"), tmp_path], [])


def test_an_excerpt_is_escaped_and_short_and_shows_what_was_found() -> None:
    shown = excerpt(("\u202e" + "x" * 1000 + " no peer " + "y" * 1000).encode(), ["No Peer"])
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert "x no peer y" in shown
    assert len(shown) <= EXCERPT_CHARACTERS + 2
    assert excerpt(b"a\x07b\tc", []) == r"a\x07b\tc"


@pytest.mark.parametrize(
    "line",
    [
        "Authorization: Bearer abc.DEF-123", "HF_TOKEN=hf_0123456789abcdefXYZ", "'api_key': 's3cr3t-value', x",
        "--api-key=s3cr3t-value", "token hf_0123456789abcdefXYZ", "password: s3cr3t-value",
    ],
)  # fmt: skip
def test_an_excerpt_shows_no_secret(line: str) -> None:
    shown = excerpt(line.encode(), [])
    assert "***" in shown
    assert not re.search("abc.DEF|hf_0|s3cr3t", shown)


def test_figures_that_matter_are_no_secrets() -> None:
    line = "num_speculative_tokens:7 must be divisible by n_predict=2, max_tokens: 4096"
    assert excerpt(line.encode(), []) == line
