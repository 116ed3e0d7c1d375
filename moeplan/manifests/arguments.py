"""A command's words as an engine's arguments, each with where it comes from and what is wrong with it.

The forms are those of Python's argparse and of what vLLM adds to it: ``--a b``, ``--a=b``, ``--no-a``, joined
short options of one letter (``-O3``), underscores for dashes, dotted keys of JSON arguments (``--spec.method x``, ``+``
after the last key for lists of text), long names cut short where only one option of the table begins so. A name that
several begin with comes out unknown, with them as near names.

Source: vLLM 0.32.0 ``utils/argparse_utils.py`` ``FlexibleArgumentParser.parse_args``, run on the forms that the tests
list; argparse's own ``allow_abbrev`` is left on in every release from 0.10.2 to 0.33.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import attrs

from moeplan.errors import Issue, escape
from moeplan.manifests.argument_table import ArgumentSpec, ArgumentTable, plain_name
from moeplan.manifests.commands import Word

__all__ = ["Argument", "Arguments", "read_arguments"]

_NUMBER = re.compile(r"-(?:[0-9]+|[0-9]*\.[0-9]+)")
_SHORT_COUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kmgt])|([0-9]+)([KMGT])", re.ASCII)
_DEEPEST = 64


@attrs.frozen
class Argument:
    """One argument as given.

    Attributes:
        name: canonical name, or as written where it is unknown.
        written: the option as written, without its value.
        kind: the table's kind; ``unknown`` where the table has none of this name.
        value: text, True or False for a flag, the value of JSON (numbers with a fraction as Decimal), a tuple of text
            for a list; None where it is missing, malformed or not known from the manifest.
        keys: keys of a dotted argument below its name, a ``+`` after the last one left in.
        words: the words that make it up, the option first.
        unresolved: names of variables its value depends on that are not known.
        problem: what is wrong with it, at the JSON path of its word.
        near: for unknown ones, names like it.
    """

    name: str
    written: str
    kind: str
    value: Any
    words: tuple[Word, ...]
    keys: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    problem: Issue | None = None
    near: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Return whether the table has it."""
        return self.kind != "unknown"

    @property
    def used(self) -> tuple[str, ...]:
        """Return the variables that its words come from."""
        return tuple(dict.fromkeys(name for word in self.words for name in word.used))


@attrs.frozen
class Arguments:
    """All arguments of a command, and the words that belong to none."""

    given: tuple[Argument, ...]
    positional: tuple[Word, ...]

    def all(self, name: str) -> tuple[Argument, ...]:
        """Return every argument of a canonical name, in order, dotted ones too."""
        return tuple(argument for argument in self.given if argument.name == name)

    def last(self, name: str) -> Argument | None:
        """Return the argument of a canonical name that holds: the last one given whole."""
        return next((argument for argument in reversed(self.all(name)) if not argument.keys), None)

    def json(self, name: str) -> Any:
        """Return the value of a JSON argument as the engine sees it, or None.

        Dotted arguments make up one value that takes the place of any given whole, wherever they stand, as vLLM does
        it. Those under another spelling of the name make up another value, and the spelling that comes up last holds
        alone. Where a part is malformed or not known, so is the whole.
        """
        listed = self.all(name)
        dotted = [argument for argument in listed if argument.keys]
        if not dotted:
            return listed[-1].value if listed else None
        holding = list(dict.fromkeys(_spelling(argument) for argument in dotted))[-1]
        dotted = [argument for argument in dotted if _spelling(argument) == holding]
        if any(argument.problem or argument.unresolved for argument in dotted):
            return None
        whole: dict[str, Any] = {}
        for argument in dotted:
            _merge(whole, _nested(argument.keys, argument.value))
        return whole

    @property
    def unknown(self) -> tuple[Argument, ...]:
        """Return the arguments that the table does not have."""
        return tuple(argument for argument in self.given if not argument.known)


def read_arguments(words: Sequence[Word], table: ArgumentTable) -> Arguments:
    """Return the arguments in ``words``, which follow the program; total: what is wrong is told in each argument."""
    positional: list[Word] = []
    given: list[Argument] = []
    at = 0
    while at < len(words):
        if words[at].text == "--":
            positional.extend(words[at + 1 :])
            break
        if not _is_option(words[at]):
            positional.append(words[at])
            at += 1
            continue
        argument = _argument(words, at, table)
        given.append(argument)
        at += len(argument.words)
    return Arguments(tuple(given), tuple(positional))


def _is_option(word: Word) -> bool:
    text = word.text
    return len(text) > 1 and text[0] == "-" and not _NUMBER.fullmatch(text) and " " not in text.split("=", 1)[0]


def _argument(words: Sequence[Word], at: int, table: ArgumentTable) -> Argument:
    written, _, joined = words[at].text.partition("=")
    value = joined if "=" in words[at].text else None
    spec, keys, negated = _look_up(written, table)
    if spec is None and not written.startswith("--") and len(written) > 2 and table.find(written[:2]) is not None:
        value, written = words[at].text[2:], written[:2]
        spec = table.find(written)
    if spec is None:
        following = _values(words, at + 1, 1) if value is None else ()
        text = following[0].text if following else value
        near = tuple(_begin_so(written.partition(".")[0], table))[:3] or table.near(written)
        return _made(written, written, "unknown", text, (words[at], *following), near=near)
    if spec.kind == "flag":
        problem = None
        if value is not None:
            problem = Issue(
                words[at].path, "flag_with_value", f"{written} takes no value", "the flag alone", _shown(value)
            )
        return _made(spec.name, written, "flag", None if problem else not negated, (words[at],), problem=problem)
    most = len(words) if spec.kind == "list" else 1
    following = _values(words, at + 1, most) if value is None else ()
    texts = [word.text for word in following] if value is None else [value]
    taken = (words[at], *following)
    if not texts:
        problem = Issue(words[at].path, "missing_value", f"{written} has no value", "a value after it")
        return _made(spec.name, written, spec.kind, None, taken, keys=keys, problem=problem)
    if spec.kind == "list":
        return _made(spec.name, written, "list", tuple(texts), taken)
    if spec.kind == "value":
        return _made(spec.name, written, "value", texts[0], taken)
    return _json_argument(spec, written, texts[0], keys, taken)


def _look_up(written: str, table: ArgumentTable) -> tuple[ArgumentSpec | None, tuple[str, ...], bool]:
    """Return the argument of a name, its dotted keys, and whether it is a flag negated."""
    spec, negated = _named(written, table)
    if spec is not None:
        return spec, (), negated
    head, dot, rest = written.partition(".")
    spec, _ = _named(head, table) if dot else (None, False)
    keys = tuple(rest.split("."))
    if spec is not None and spec.kind == "json" and all(key.removesuffix("+") for key in keys) and len(keys) < _DEEPEST:
        return spec, keys, False
    return None, (), False


def _named(written: str, table: ArgumentTable) -> tuple[ArgumentSpec | None, bool]:
    """Return the argument of a name, whole or cut short where that leaves no choice, and whether it is negated."""
    spec = table.find(written)
    if spec is not None:
        return spec, False
    whole = plain_name(written)
    if not (whole.startswith("--no-") and _is_flag(table.find("--" + whole[5:]))):
        begin = list(_begin_so(written, table))
        if len(begin) != 1:
            return None, False
        whole = begin[0]
    spec = table.find(whole)
    return (spec, False) if spec is not None else (table.find("--" + whole[5:]), True)


def _is_flag(spec: ArgumentSpec | None) -> bool:
    return spec is not None and spec.kind == "flag"


def _begin_so(written: str, table: ArgumentTable) -> Iterator[str]:
    """Yield the long names, of flags the negated ones too, that begin with a name cut short."""
    start = plain_name(written)
    if not start.startswith("--") or len(start) < 3:
        return
    for spec in table.specs:
        for name in (spec.name, *spec.aliases):
            if name.startswith(start):
                yield name
            if spec.kind == "flag" and name.startswith("--") and f"--no-{name[2:]}".startswith(start):
                yield f"--no-{name[2:]}"


def _values(words: Sequence[Word], start: int, most: int) -> tuple[Word, ...]:
    taken: list[Word] = []
    for word in words[start : start + most]:
        if _is_option(word) or word.text == "--":
            break
        taken.append(word)
    return tuple(taken)


def _made(
    name: str,
    written: str,
    kind: str,
    value: Any,
    words: tuple[Word, ...],
    *,
    keys: tuple[str, ...] = (),
    problem: Issue | None = None,
    near: tuple[str, ...] = (),
) -> Argument:
    unresolved = tuple(dict.fromkeys(name for word in words for name in word.unresolved))
    return Argument(name, written, kind, value, words, keys, unresolved, problem, near)


def _json_argument(
    spec: ArgumentSpec, written: str, text: str, keys: tuple[str, ...], words: tuple[Word, ...]
) -> Argument:
    if any(word.unresolved for word in words):
        return _made(spec.name, written, "json", None, words, keys=keys)
    if keys and keys[-1].endswith("+"):
        return _made(spec.name, written, "json", text.split(","), words, keys=keys)
    problem = None
    try:
        value = _decode(text)
    except ValueError as error:
        # vLLM takes the value of a dotted argument for a count such as 80g, else for text, where it is no JSON.
        value = _count(text) if keys else None
        place = (
            f" at character {error.pos + 1}: {error.msg}" if isinstance(error, json.JSONDecodeError) else f": {error}"
        )
        if not keys:
            message = f"value of {written} is not JSON{escape(place)}"
            problem = Issue(words[-1].path, "invalid_json", message, "one JSON value", _shown(text))
    return _made(spec.name, written, "json", value, words, keys=keys, problem=problem)


def _decode(text: str) -> Any:
    """Return strict JSON: no key twice, no NaN, fractions exact; ValueError otherwise."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=Decimal, parse_constant=_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("key given more than once")
    return made


def _constant(token: str) -> Any:
    raise ValueError(f"{token} is no JSON number")


def _count(text: str) -> int | str:
    """Return a count with a suffix, decimal for small letters and binary for capital ones, or the text itself."""
    match = _SHORT_COUNT.fullmatch(text.strip()) if len(text) <= 40 else None
    if match is None:
        return text
    if match[2] is not None:
        return int(Decimal(match[1]) * 10 ** (3 * "kmgt".index(match[2]) + 3))
    return int(match[3]) << (10 * "KMGT".index(match[4]) + 10)


def _spelling(argument: Argument) -> str:
    return plain_name(argument.written.partition(".")[0])


def _nested(keys: Sequence[str], value: Any) -> dict[str, Any]:
    made = {keys[-1].removesuffix("+"): value}
    for key in reversed(keys[:-1]):
        made = {key: made}
    return made


def _merge(whole: dict[str, Any], more: dict[str, Any]) -> None:
    """Put ``more`` into ``whole``: objects merge, lists are joined, everything else is replaced."""
    for key, value in more.items():
        before = whole.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            _merge(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            whole[key] = [*before, *value]
        elif isinstance(value, dict):
            whole[key] = {}
            _merge(whole[key], value)
        else:
            whole[key] = value


def _shown(text: str) -> str:
    return escape(text, 60)
