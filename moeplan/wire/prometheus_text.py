"""A page in the Prometheus text format, line by line.

Source: Prometheus text exposition format 0.0.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from moeplan.errors import InputError, Issue, escape

__all__ = ["MAX_METRICS_BYTES", "NUMBER", "Sample", "parse_exposition"]

MAX_METRICS_BYTES = 64 << 20

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*+[ \t]*+=[ \t]*+"(?:[^"\\\n]|\\.)*+"[ \t]*+'
_LABELS = rf"\{{[ \t]*+((?:{_LABEL}(?:,[ \t]*+|(?=\}})))*+)\}}"
# Possessive throughout: a hostile line costs no more than its length.
_SAMPLE = re.compile(
    rf"[ \t]*+({_NAME})(?:[ \t]*+{_LABELS}[ \t]*+|[ \t]++)(\S++)(?:[ \t]++(-?\d++))?[ \t]*+",
    re.ASCII,
)
_PAIR = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\\n]|\\.)*)"', re.ASCII)
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?|[+-]?Inf|NaN", re.ASCII)
"""What a sample's value looks like."""


@attrs.frozen
class Sample:
    """One line: its number, name, labels and the text of its value."""

    line: int
    name: str
    labels: Mapping[str, str]
    value: str


def parse_exposition(data: bytes, *, max_bytes: int = MAX_METRICS_BYTES) -> tuple[Sample, ...]:
    """Return every sample of one scrape in the text format, in order.

    Raises:
        InputError: too large, not UTF-8, a line that is no sample, or one series given twice (several scrapes joined).
    """
    if len(data) > max_bytes:
        raise InputError(
            Issue("$", "too_large", "metrics too large", f"at most {max_bytes} bytes", f"{len(data)} bytes")
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(Issue("$", "wrong_encoding", f"not UTF-8 at byte {error.start}", "UTF-8")) from None
    seen: set[tuple[str, frozenset[tuple[str, str]]]] = set()
    made = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        sample = _sample(number, line.rstrip("\r"))
        key = (sample.name, frozenset(sample.labels.items()))
        if key in seen:
            step = "give one scrape a file"
            raise InputError(
                Issue(f"line {number}", "duplicate_series", "series given twice", "one scrape", sample.name, step)
            )
        seen.add(key)
        made.append(sample)
    return tuple(made)


def _sample(number: int, line: str) -> Sample:
    match = _SAMPLE.fullmatch(line)
    if match is None or not NUMBER.fullmatch(match[3]):
        got = escape(line, 60)
        raise InputError(Issue(f"line {number}", "invalid_metrics", "not a sample", 'name{label="…"} value', got))
    labels: dict[str, str] = {}
    for name, value in _PAIR.findall(match[2] or ""):
        if name in labels:
            raise InputError(Issue(f"line {number}", "invalid_metrics", "label given twice", "each label once", name))
        labels[name] = re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), value)
    return Sample(number, match[1], labels, match[3])
