"""A command's words as an engine's arguments, each with where it comes from and what is wrong with it.

The forms are those of Python's argparse and of what vLLM adds to it: ``--a b``, ``--a=b``, ``--no-a``, joined
short options of one letter (``-O3``), underscores for dashes, dotted keys of JSON arguments (``--spec.method x``, ``+``
after the last key for lists). Abbreviated names are not guessed: they come out unknown, with what they are near to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import attrs

from moeplan.errors import Issue, escape
from moeplan.manifests.argument_table import ArgumentSpec, ArgumentTable
from moeplan.manifests.commands import Word

__all__ = ["Argument", "Arguments", "read_arguments"]

_NUMBER = re.compile(r"-(?:[0-9]+|[0-9]*\.[0-9]+)")
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
        keys: keys of a dotted argument below its name.
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

        Dotted arguments make up one value that takes the place of any given whole, as vLLM does it. Where a part is
        malformed or not known, so is the whole.
        """
        listed = self.all(name)
        dotted = [argument for argument in listed if argument.keys]
        if not dotted:
            return listed[-1].value if listed else None
        if any(argument.problem or argument.unresolved for argument in dotted):
            return None
        whole: dict[str, Any] = {}
        for argument in dotted:
            _put(whole, argument.keys, argument.value)
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
        return _made(written, written, "unknown", text, (words[at], *following), near=table.near(written))
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
    spec = table.find(written)
    if spec is not None:
        return spec, (), False
    if written.startswith(("--no-", "--no_")):
        positive = table.find("--" + written[5:])
        if positive is not None and positive.kind == "flag":
            return positive, (), True
    head, dot, rest = written.partition(".")
    spec = table.find(head) if dot else None
    keys = tuple(rest.split("."))
    if spec is not None and spec.kind == "json" and all(keys) and len(keys) < _DEEPEST:
        return spec, keys, False
    return None, (), False


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
    problem = None
    try:
        value = _decode(text)
    except ValueError as error:
        # vLLM takes the value of a dotted argument for text where it is no JSON.
        value = text if keys else None
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


def _put(whole: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        below = whole.get(key)
        if not isinstance(below, dict):
            below = whole[key] = {}
        whole = below
    last = keys[-1]
    if not last.endswith("+"):
        whole[last] = value
        return
    listed = whole.get(last[:-1])
    more = value if isinstance(value, list) else [value]
    whole[last[:-1]] = [*listed, *more] if isinstance(listed, list) else more


def _shown(text: str) -> str:
    return escape(text, 60)
