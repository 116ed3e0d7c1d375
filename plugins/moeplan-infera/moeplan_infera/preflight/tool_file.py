"""One host's file of the tool, by its shape: strict where the tool is, open where its details are free.

Source: ``infera/tools/preflight/cli.py`` (``_write_json``) and ``finding.py``.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

import attrs

from moeplan.errors import Issue, escape
from moeplan.model.preflight import HOST_TIME_PATTERN
from moeplan.units import MAX_SAFE_INTEGER

__all__ = ["LEVELS", "HostReport", "Malformed", "Number", "ToolFinding", "as_number", "as_object", "read_host"]

LEVELS = ("info", "warn", "fail")
"""The tool's levels, mildest first."""
Number = int | Decimal

_KEYS = {"host", "image", "generated", "sections"}
_FINDING_KEYS = {"level", "message", "details"}
_MOST_SECTIONS = 64
_MOST_FINDINGS = 2000
_MOST_NUMBER_CHARACTERS = 40


class Malformed(Exception):
    """The file is not what the tool writes."""

    def __init__(
        self,
        path: str,
        message: str,
        expected: str | None = None,
        got: object = None,
        *,
        code: str = "not_infera_preflight",
    ) -> None:
        super().__init__(message)
        self.path = path
        self.code = code
        self.message = message
        self.expected = expected
        self.got = None if got is None else escape(repr(got), 80)

    def issue(self, file: str) -> Issue:
        """Return it as a fault of a file."""
        step = "give the <host>.json that the tool wrote for one host, not another *.json of its working folders"
        path = f"{escape(file, 200)}: {escape(self.path, 400)}"
        return Issue(path, self.code, self.message, self.expected, self.got, step)


@attrs.frozen
class ToolFinding:
    """One finding as the tool wrote it, and its place in the file."""

    level: str
    message: str
    details: dict[str, Any]
    path: str

    def number(self, key: str) -> Number | None:
        """Return a number among the details; None where it is null or missing.

        Raises:
            Malformed: it is something else.
        """
        return as_number(self.details.get(key), f"{self.path}.details.{key}")

    def text(self, key: str) -> str | None:
        """Return text among the details; None where it is null or missing.

        Raises:
            Malformed: it is something else.
        """
        value = self.details.get(key)
        if value is not None and type(value) is not str:
            raise Malformed(f"{self.path}.details.{key}", "value of the wrong type", "text", value)
        return value

    def listed(self, key: str) -> list[Any]:
        """Return a list among the details, empty where it is missing.

        Raises:
            Malformed: it is something else.
        """
        value = self.details.get(key, [])
        if type(value) is not list:
            raise Malformed(f"{self.path}.details.{key}", "value of the wrong type", "a list", value)
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        """Return an object among the details, empty where it is missing.

        Raises:
            Malformed: it is something else.
        """
        return as_object(self.details.get(key, {}), f"{self.path}.details.{key}")


@attrs.frozen
class HostReport:
    """One host's file."""

    file: str
    host: str
    image: str | None
    generated: str
    sections: dict[str, tuple[ToolFinding, ...]]


def as_number(value: Any, path: str) -> Number | None:
    """Return a number or None.

    Raises:
        Malformed: something else, or a number too large to be one of a host.
    """
    if value is None:
        return None
    if type(value) not in (int, Decimal):
        raise Malformed(path, "value of the wrong type", "a number", value)
    if abs(value) > MAX_SAFE_INTEGER or len(str(value)) > _MOST_NUMBER_CHARACTERS:
        raise Malformed(path, "number out of range", "a number below 2^53 of at most 40 characters", value)
    return value  # type: ignore[no-any-return]


def as_object(value: Any, path: str) -> dict[str, Any]:
    """Return an object.

    Raises:
        Malformed: something else.
    """
    if type(value) is not dict:
        raise Malformed(path, "value of the wrong type", "an object", value)
    return value


def read_host(name: str, text: str) -> HostReport:
    """Return the report of one host.

    Args:
        name: the file's name.
        text: its content.

    Raises:
        Malformed: not JSON, a key given twice, or not of the tool's shape.
    """
    value = as_object(_parse(text), "$")
    _check_keys(value, _KEYS, "$")
    host = _plain(value["host"], "$.host", 200)
    image = _plain(value["image"], "$.image", 1024)
    generated = value["generated"]
    if type(generated) is not str or not re.fullmatch(HOST_TIME_PATTERN[1:-1], generated):
        raise Malformed("$.generated", "not the tool's form of a time", "YYYY-MM-DD HH:MM:SS", generated)
    sections = as_object(value["sections"], "$.sections")
    if len(sections) > _MOST_SECTIONS:
        raise Malformed("$.sections", "too many sections", f"at most {_MOST_SECTIONS}", len(sections))
    found = {}
    for key, findings in sections.items():
        path = f"$.sections.{key}"
        if not re.fullmatch(r"[a-z0-9_-]{1,64}", key):
            raise Malformed("$.sections", "not a section's name", "lower-case letters, digits, - and _", key)
        found[key] = _findings(findings, path)
    return HostReport(name, host, None if image == "unknown" else image, generated, found)


def _findings(value: Any, path: str) -> tuple[ToolFinding, ...]:
    if type(value) is not list or len(value) > _MOST_FINDINGS:
        raise Malformed(path, "not a list of findings", f"a list of at most {_MOST_FINDINGS}", type(value).__name__)
    found = []
    for number, item in enumerate(value):
        at = f"{path}[{number}]"
        finding = as_object(item, at)
        _check_keys(finding, _FINDING_KEYS, at)
        if finding["level"] not in LEVELS:
            raise Malformed(f"{at}.level", "not a level of the tool", ", ".join(LEVELS), finding["level"])
        message = finding["message"]
        if type(message) is not str or not message:
            raise Malformed(f"{at}.message", "value of the wrong type", "text", message)
        details = as_object(finding["details"], f"{at}.details")
        found.append(ToolFinding(finding["level"], message, details, at))
    return tuple(found)


def _check_keys(value: dict[str, Any], wanted: set[str], path: str) -> None:
    if set(value) != wanted:
        missing, extra = sorted(wanted - set(value)), sorted(set(value) - wanted)
        got = f"without {', '.join(missing)}" if missing else f"also {escape(', '.join(extra), 100)}"
        raise Malformed(path, f"not the tool's keys ({got})", "exactly " + ", ".join(sorted(wanted)))


def _plain(value: Any, path: str, most: int) -> str:
    if type(value) is not str or not 1 <= len(value) <= most or not value.isprintable():
        raise Malformed(path, "value refused", f"printable text of 1 to {most} characters", value)
    return value


def _parse(text: str) -> Any:
    try:
        return json.loads(
            text, parse_float=Decimal, parse_int=_integer, parse_constant=_constant, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise Malformed("$", f"not JSON at {place}: {error.msg}", "one JSON object", code="invalid_json") from None
    except RecursionError:
        raise Malformed("$", "nested too deep", "the tool's shape", code="invalid_json") from None


def _integer(token: str) -> int | Decimal:
    return int(token) if len(token) <= 17 else Decimal(token)


def _constant(token: str) -> Any:
    raise Malformed("$", "not a JSON number", "finite numbers", token, code="invalid_json")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise Malformed("$", "key given more than once", "each key once", twice, code="duplicate_key")
    return made
