"""Whether a pattern is found in a text, in bounded time: RE2 where it can say the pattern, else a child process."""

from __future__ import annotations

import json
import re
import selectors
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from moeplan.diagnosis.linear_pattern import Untranslatable, linear_pattern
from moeplan.diagnosis.pattern_tree import parse_pattern
from moeplan.errors import escape

__all__ = ["BUDGET_US", "BoundedPattern", "GivenUpError", "LinearPatterns", "PatternChild", "check_pattern"]

BUDGET_US = 5_000_000
"""Processor time, in microseconds, that a pattern RE2 cannot express has for all logs together."""

_SILENCE_S = 60
"""A child that has said nothing for so long is stopped, whatever time it has used."""
_MOST_TEXTS = 4096
_MOST_INSTRUCTIONS = 1500
"""Of a pattern's program for RE2, whose time for a byte grows with it. Common ones have about a hundred."""


class GivenUpError(Exception):
    """A pattern is searched for no longer; ``code`` is one of ``FAILURE_CODES``."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@attrs.define
class LinearPatterns:
    """Patterns that RE2 searches all at once, each by its number."""

    _numbers: dict[str, int] = attrs.field(factory=dict)
    _filter: Any = None

    def add(self, pattern: str) -> int:
        """Return the pattern's number.

        Raises:
            Untranslatable: RE2 cannot express it, or only as a program too large to be quick.
        """
        import re2

        if pattern in self._numbers:
            return self._numbers[pattern]
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        written = linear_pattern(pattern)
        try:
            if re2.compile(written, options).programsize > _MOST_INSTRUCTIONS:
                raise Untranslatable("too large")
            self._filter = self._filter or re2.Filter()
            self._filter.Add(written, options)
        except re2.error as error:
            raise Untranslatable(str(error)) from None
        self._numbers[pattern] = len(self._numbers)
        return self._numbers[pattern]

    def prepare(self) -> None:
        """Make ready to search; no pattern can be added after it."""
        if self._filter is not None:
            self._filter.Compile()

    def found(self, text: bytes) -> Sequence[int]:
        """Return the numbers of the patterns that are found in a text of valid UTF-8."""
        return () if self._filter is None else self._filter.Match(text, False) or ()


@attrs.define
class BoundedPattern:
    """A pattern that only Python's engine can search; all its searches share one budget of processor time."""

    _pattern: str
    _child: PatternChild
    _left_us: int = attrs.field(factory=lambda: BUDGET_US)

    def found(self, texts: Sequence[bytes]) -> list[int]:
        """Return the indices of the texts, valid UTF-8, in which the pattern is found.

        Raises:
            GivenUpError: the budget is used up.
        """
        found: list[int] = []
        for start in range(0, len(texts), _MOST_TEXTS):
            part = [text.decode() for text in texts[start : start + _MOST_TEXTS]]
            indices, took = self._child.search(self._pattern, part, self._left_us)
            self._left_us -= took
            found += [start + index for index in indices]
        return found


@attrs.define
class PatternChild:
    """A child process that searches with Python's engine; started when first needed, and again after one was ended."""

    _process: subprocess.Popen[bytes] | None = None

    def search(self, pattern: str, texts: Sequence[str], budget_us: int) -> tuple[list[int], int]:
        """Return the indices of the texts in which the pattern is found, and the microseconds it took.

        Raises:
            GivenUpError: the budget is used up, or the process ended.
        """
        if budget_us <= 0:
            raise _too_slow()
        asked = {"pattern": pattern, "texts": list(texts), "budgetMicroseconds": budget_us}
        try:
            told = json.loads(self._ask(json.dumps(asked).encode() + b"\n"))
            return [int(index) for index in told["found"]], int(told["microseconds"])
        except (ValueError, BrokenPipeError, TimeoutError):
            self.close()
            raise _too_slow() from None

    def _ask(self, request: bytes) -> bytes:
        if self._process is None:
            child = str(Path(__file__).with_name("pattern_child.py"))
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", child],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(request)
        self._process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(_SILENCE_S):
                raise TimeoutError
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the child, where there is one."""
        if self._process is None:
            return
        process, self._process = self._process, None
        with suppress(OSError):
            process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.wait()


def _too_slow() -> GivenUpError:
    return GivenUpError("timed_out", f"the pattern took more than {BUDGET_US // 1000} ms of processor time")


def check_pattern(pattern: str) -> None:
    """Refuse what Python does not compile under re.ASCII.

    Raises:
        GivenUpError: no pattern.
    """
    try:
        parse_pattern(pattern)
        re.compile(pattern, re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise GivenUpError("invalid_pattern", f"the pattern does not compile: {escape(str(error))}") from None
