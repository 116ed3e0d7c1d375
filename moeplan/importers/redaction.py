"""A log without what a record must not hold: keys, paths, hosts, addresses, names, arguments, prompts.

Each rule errs towards taking out too much. What is left is for people; no criterion reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["redact"]

_SECRET = r"api[_-]?key|access[_-]?key|token(?!s)|passw(?:or)?d|secret|credential|authorization|cookie"
_SECRET_WORDS = rf"[a-z0-9_-]*(?:{_SECRET})[a-z0-9_-]*"
_NAME_WORDS = r"user(?:[_-]?name)?|owner|login|host(?:[_-]?name)?|node[_-]?name|email|server[_-]?name"
_DOMAINS = r"com|net|org|io|ai|dev|cloud|co|de|eu|uk|fr|us|cn|jp|edu|gov|internal|local|lan|corp|intra|cluster|svc|home"
_DOMAINS += "|example|test|localdomain"
_VALUE = r"(?:\[[^\]]*\]|\"[^\"]*\"|'[^']*'|(?:bearer|basic)\s+\S+|[^\s,;)}\]]+)"

_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), put)
    for pattern, put in (
        # Whole parts of a line that hold what a person typed.
        (r"((?:non-default )?args: ).*", r"\1<arguments>"),
        (r"( with config: ).*", r"\1<configuration>"),
        (r"(Received request ).*", r"\1<request>"),
        (r"\b(prompts?|messages?|generated_text|content|input_value)(['\"]?\s*[:=]\s*).*", r"\1\2<text>"),
        # Secrets, by what stands before them, then by their own form.
        (rf"(['\"]?\b(?:{_SECRET_WORDS})\b['\"]?\s*[:=]\s*){_VALUE}", r"\1<secret>"),
        (rf"(--(?:{_SECRET_WORDS}))(\s+|=){_VALUE}", r"\1\2<secret>"),
        (r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}", r"\1 <secret>"),
        (r"\b(?:hf|sk|pk|ghp|gho|ghs|github_pat|glpat|xox[abpr]|nvapi|AKIA|ASIA|AIza)[-_A-Za-z0-9]{12,}", "<secret>"),
        (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?", "<secret>"),
        (r"-----BEGIN [A-Z ]+-----.*", "<secret>"),
        # Places.
        (r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"<>,;)\]]+", "<url>"),
        (r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", "<address>"),
        (rf"(['\"]?\b(?:{_NAME_WORDS})\b['\"]?\s*[:=]\s*){_VALUE}", r"\1<name>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b", "<address>"),
        (r"(?<![0-9A-Za-z:.])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?:%[a-z0-9]+)?(?![0-9A-Za-z:])", "<address>"),
        (r"\b(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}\b", "<address>"),
        (r"\b(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<device>"),
        (r"(?:[A-Za-z]:\\|\\\\)[^\s'\"<>,;]+", "<path>"),
        (r"(?<![A-Za-z0-9_<])(?:~|\.{1,2})?(?:/[^\s'\"<>,;:()\[\]{}|]+)+/?", "<path>"),
        (rf"\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:{_DOMAINS})\b(?::\d+)?", "<host>"),
        # Any name of three parts or more that begins as machines' names do, with a digit or a hyphen in it.
        (r"(?<![a-z0-9./_-])(?=[a-z0-9-]*[0-9-])[a-z0-9-]*[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+\.[a-z]{2,}\b", "<host>"),
        (r"\bip-\d{1,3}(?:-\d{1,3}){3}\b", "<host>"),
    )
)
_CLOCK = re.compile(r"(?<![0-9:])\d\d:\d\d:\d\d(?![0-9:])")
_MARK = "\x00"


def redact(text: str, names: Iterable[str] = ()) -> str:
    """Return a log's text with what must not be kept replaced by words such as ``<path>``.

    Args:
        text: the log, lines ended with LF; their number stays.
        names: further texts to take out wherever they stand: this host's name, the user's name.
    """
    hidden = sorted({name for name in names if len(name) >= 2}, key=len, reverse=True)
    return "\n".join(_line(line, hidden) for line in text.split("\n"))


def _line(line: str, names: list[str]) -> str:
    line = line.replace(_MARK, "")
    clocks = _CLOCK.findall(line)
    line = _CLOCK.sub(_MARK, line)  # a time of day has the form of an address
    for pattern, put in _RULES:
        line = pattern.sub(put, line)
    for name in names:
        line = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", "<name>", line, flags=re.IGNORECASE)
    for clock in clocks:
        line = line.replace(_MARK, clock, 1)
    return line.replace(_MARK, "")
