"""The diagnosis equals a line-by-line search with Python's engine, and no border of blocks leaves a trace."""

from __future__ import annotations

import gzip
import io
import json
import re
from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from moeplan.diagnosis.diagnose import diagnose
from moeplan.diagnosis.linear_pattern import Untranslatable, linear_pattern
from moeplan.diagnosis.required_text import anchors
from moeplan.model.plugin import FactSource, LogSignature

SOURCE = (FactSource("a document"),)


def signature(
    name: str, literals: tuple[str, ...], pattern: str | None, expectation: str = "informs", severity: str = "error"
) -> LogSignature:
    return LogSignature(
        id=name,
        severity=severity,
        literals=literals,
        pattern=pattern,
        expectation=expectation,
        cause="c",
        remedy="r",
        sources=SOURCE,
    )


KNOWN = (
    signature("A", ("engine died",), None),
    signature("B", (), r"rank \d+ of (\d+)"),
    signature("C", (), r"no peer|[Tt]imed out$"),
    signature("D", ("rank",), r"^\(.*\) "),
    signature("E", (), r"(?i)OUT of memory", "must_be_zero"),
    signature("E", ("é",), None, "must_be_zero"),
    signature("F", (), r"\bx{2,3}\b"),
    signature("G", (), r"(?<=rank )7"),
    signature("H", ("<ready>",), None, "must_be_present"),
    signature("I", (), r"a.c"),
)
"""Texts, alternatives, anchors, folded case, no text at all, look-behind, and texts that JSON may escape."""

WORDS = (
    "engine died", "engine ", "died", "rank 7 of 8", "rank ", "no peer", "Timed out", "timed out", "(x) ",
    "out OF memory", "é", "xx", "xxxx", " ", "<ready>", "\x1b[36m", "\x1b[0m", "\x1b[2K", "\x1b]0;t\x07", "\r", "\0",
    "aéc", "abc", "\t",
)  # fmt: skip
BYTES = st.sampled_from([word.encode() for word in WORDS] + [b"\xff", b"\xc3", b"\xe2\x82", b"\x1b", b"{", b"}", b'"'])
PLAIN_LINES = st.lists(BYTES, max_size=8).map(b"".join)
JSON_LINES = st.lists(st.sampled_from(WORDS), max_size=5).map(
    lambda words: json.dumps({"log": "".join(words) + "\n", "stream": "stderr", "n": 1}).encode()
)
LOGS = st.tuples(st.lists(st.one_of(PLAIN_LINES, JSON_LINES), max_size=25), st.booleans()).map(
    lambda drawn: b"\n".join(drawn[0]) + (b"\n" if drawn[1] else b"")
)


def naive(log: bytes) -> dict[str, tuple[int, int]]:
    """Return count and first line of each id, by searching each line for each signature."""
    found: dict[str, tuple[int, int]] = {}
    lines = log.split(b"\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == b"" else lines, 1):
        texts = said(line)
        ids = {one.id for one in KNOWN if any(bears(text, one) for text in texts)}
        for one in ids:
            count, first = found.get(one, (0, number))
            found[one] = (count + 1, first)
    return found


def said(line: bytes) -> list[str]:
    """Return what a line says: colours, then other escapes, then escapes in JSON taken out; JSON's texts too."""
    for escapes in (
        rb"\x1b\[[\d;]*m",
        rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Za-z]|\x1b[0-Z\\^-~]",
        rb"\\u001[bB]\[[0-?]*[ -/]*[@-~]",
    ):
        line = re.sub(escapes, b"", line)
    text = line.rstrip(b"\r").decode("utf-8", "replace")
    texts = [text]
    if text[:1] == "{" and text[-1:] == "}":
        with suppress(ValueError):
            texts += [value.rstrip("\r\n") for value in json.loads(text).values() if isinstance(value, str)]
    return texts


def bears(text: str, one: LogSignature) -> bool:
    found = one.pattern is None or re.search(one.pattern, text, re.ASCII) is not None
    return found and all(literal in text for literal in one.literals)


def diagnosed(log: bytes, block_bytes: int) -> dict[str, tuple[int, int]]:
    made = diagnose(io.BytesIO(log), KNOWN, block_bytes=block_bytes)
    assert not made.failures
    assert made.logs[0].lines == log.count(b"\n") + (not log.endswith(b"\n") and log != b"")
    found = {finding.id: (finding.count, finding.first_line) for finding in made.findings}
    for row in made.expected:
        if row.expectation == "must_be_present" and row.count:
            assert row.first_line is not None
            found[row.id] = (row.count, row.first_line)
    return found


@settings(max_examples=60)
@given(LOGS, st.sampled_from([6, 7, 64, 1 << 17]))
@example(b"rank 7 of 8\nengine \x1b[0mdied\n", 6)
@example(b"\x1b[36m(EngineCore pid=1)\x1b[0m rank 9 of 9\r\nTimed out\r\n", 6)
@example(b'{"log":"\\u001b[36mengine \\u001b[0mdied\\n"}\n{"log":"\\u003cready\\u003e"}', 6)
@example(b"aaa\nengine died", 1)
def test_it_equals_a_search_line_by_line(log: bytes, block_bytes: int) -> None:
    assert diagnosed(log, block_bytes) == naive(log)


@settings(max_examples=20)
@given(LOGS)
def test_gzip_changes_nothing(log: bytes) -> None:
    half = len(log) // 2
    packed = gzip.compress(log[:half]) + gzip.compress(log[half:])
    assert diagnosed_gzip(packed) == naive(log)


def diagnosed_gzip(packed: bytes) -> dict[str, tuple[int, int]]:
    made = diagnose(io.BytesIO(packed), KNOWN, block_bytes=11)
    found = {finding.id: (finding.count, finding.first_line) for finding in made.findings}
    return found | {row.id: (row.count, row.first_line or 0) for row in made.expected if row.count}


@settings(max_examples=200)
@given(st.deferred(lambda: pieces()), st.lists(st.sampled_from("abkKx"), max_size=6).map("".join))
def test_what_a_pattern_requires_is_in_every_text_it_is_found_in(pattern: str, text: str) -> None:
    if re.search(pattern, text, re.ASCII):
        wanted = anchors(signature("A", (), pattern))
        assert not wanted or any(one.text in (text.lower() if one.folded else text) for one in wanted)


def pieces() -> st.SearchStrategy[str]:
    single = st.sampled_from(
        ["a", "b", "k", "K", "é", ".", r"\d", r"\D", r"\s", r"\S", r"\w", r"\W", "[ab]", "[^a]", "[a-f]", r"[^\W_]",
         r"[\s\-k]", r"\b", "^", "$", r"\A", r"\Z", r"\.", r"\x0b", "(?i:k)", "(?i:[a-k])", "(?i:[^k])",
         "(?s:.)", "(?m:^a)"]
    )  # fmt: skip
    return st.recursive(
        single,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=4).map("".join),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: "(" + "|".join(parts) + ")"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{1,2}", "{0,1}"])).map(
                lambda drawn: f"(?:{drawn[0]}){drawn[1]}"
            ),
        ),
        max_leaves=6,
    )


@settings(max_examples=400)
@given(pieces(), st.lists(st.sampled_from("abkK.é 0_-\t\x0b\x85ſ\u212a"), max_size=6).map("".join))
@example(r"\s", "\x0b")
@example("(?i:k)", "\u212a")
@example("a$", "a")
def test_a_pattern_for_re2_is_found_where_python_finds_it(pattern: str, text: str) -> None:
    import re2

    try:
        written = linear_pattern(pattern)
    except Untranslatable:
        return
    options = re2.Options()
    options.log_errors = False
    found = re2.compile(written, options).search(text.encode()) is not None
    assert found == (re.search(pattern, text, re.ASCII) is not None)
