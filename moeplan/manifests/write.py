"""Deterministic YAML: block style, keys as given, quotes only where a reader could take a word for something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from moeplan.errors import InputError, Issue, escape
from moeplan.manifests.yaml_scalars import is_ambiguous
from moeplan.wire.strict_json import child

__all__ = ["dump_documents", "dump_yaml"]

_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@`")
_MOST_KEY = 1000
"""Longest key in characters as written: a YAML reader looks no further than 1024 for its colon."""
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\0": "\\0"}
_DEEPEST = 64


def dump_yaml(value: Any) -> str:
    """Return plain values (dicts, lists, tuples, text, integers, decimals, booleans, None) as one YAML document.

    The same value gives the same text; :func:`~moeplan.manifests.yaml_positions.load_manifests` reads it back equal
    (tuples as lists). Text of several lines becomes a literal block, any other text stays on one line.

    Raises:
        InputError: anything else in it, floats too; nesting beyond 64; unpaired surrogates; very long keys.
    """
    lines = list(_block(value, "$", 0))
    return "\n".join(lines) + "\n"


def dump_documents(values: Iterable[Any]) -> str:
    """Return several documents, set apart by ``---``; raises as :func:`dump_yaml`."""
    return "---\n".join(dump_yaml(value) for value in values)


def _block(value: Any, path: str, depth: int) -> Iterator[str]:
    """Yield the lines of a value without indentation of its own."""
    if depth >= _DEEPEST:
        raise _refused(path, "too_deep", "nested too deep", f"at most {_DEEPEST} levels")
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _entry(_key(key, path), item, child(path, key), depth)
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            lines = _block(item, f"{path}[{index}]", depth + 1)
            yield f"- {next(lines)}"
            yield from _indented(lines)
    else:
        head, *rest = _leaf(value, path)
        yield head
        yield from _indented(rest)


def _entry(key: str, item: Any, path: str, depth: int) -> Iterator[str]:
    lines = _block(item, path, depth + 1)
    if isinstance(item, dict) and item:
        yield f"{key}:"
        yield from _indented(lines)
    elif isinstance(item, list | tuple) and item:
        yield f"{key}:"
        yield from lines
    else:
        yield f"{key}: {next(lines)}"
        yield from lines


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)


def _leaf(value: Any, path: str) -> list[str]:
    if isinstance(value, str):
        return _literal(value) or [_one_line(value, path)]
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int) and abs(value) < 10**300:
        return [str(value)]
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 300:
        return [_decimal(value)]
    if isinstance(value, dict):
        return ["{}"]
    if isinstance(value, list | tuple):
        return ["[]"]
    expected = "a dict, list, text, integer, finite Decimal, boolean or None"
    raise _refused(path, "not_plain", "a value that YAML here does not hold", expected, type(value).__name__)


def _decimal(value: Decimal) -> str:
    text = str(value).replace("E", "e")
    # Without a point or exponent a reader would take it for an integer.
    return text if "." in text or "e" in text else f"{text}.0"


def _literal(text: str) -> list[str]:
    """Return the lines of a literal block, or nothing where the text is none that survives as one."""
    if "\n" not in text.rstrip("\n") or text[0] in " \n\t":
        return []
    if not all(line.isprintable() for line in text.replace("\t", " ").split("\n")):
        return []
    body = text.rstrip("\n")
    ending = len(text) - len(body)
    if body.split("\n")[-1].isspace():
        return []
    return ["|" + ("-" if ending == 0 else "" if ending == 1 else "+"), *body.split("\n"), *[""] * (ending - 1)]


def _one_line(text: str, path: str) -> str:
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise _refused(path, "unpaired_surrogate", "text with an unpaired surrogate", "Unicode text")
    if not text.isprintable():
        return '"' + "".join(_escaped(c) for c in text) + '"'
    return text if _plain(text) else "'" + text.replace("'", "''") + "'"


def _escaped(c: str) -> str:
    if c in _SHORT:
        return _SHORT[c]
    if c.isprintable():
        return c
    code = ord(c)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _plain(text: str) -> bool:
    if is_ambiguous(text) or text != text.strip() or text.startswith(("---", "...")):
        return False
    if text[0] in _INDICATORS and not (text[0] in "-?:" and len(text) > 1 and text[1] not in " ,[]{}"):
        return False
    return ": " not in text and " #" not in text and not text.endswith(":")


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise _refused(path, "key_not_text", "a key that is not text", "text", type(key).__name__)
    written = _one_line(key, path)
    if len(written) > _MOST_KEY:
        raise _refused(path, "key_too_long", "a key too long", f"at most {_MOST_KEY} characters as written", key)
    return written


def _refused(path: str, code: str, message: str, expected: str, got: str | None = None) -> InputError:
    return InputError(Issue(path, code, message, expected, None if got is None else escape(got, 60)))
