"""Conditions over fields, as data in JSON, with three answers: true, false, and None where it is not known.

A test names a field (:mod:`moeplan.facts.fields`) and one operator::

    {"field": "argument --gpu-memory-utilization", "above": "0.88"}
    {"field": "environment PYTHONHASHSEED", "is-not": "0"}
    {"field": "argument --port", "is-not": {"field": "container startupProbe.httpGet.port"}}

``"default"`` stands in for a field that is absent. Tests are joined by ``{"all": […]}``, ``{"any": […]}`` and
``{"not": …}``. Within a group of launches ``{"some": …}`` and ``{"every": …}`` quantify over its engines and
``{"differs": FIELD, "among": …}`` compares them. An absent field is equal to nothing and fails every comparison but
``absent``, ``is-not`` and ``none-of``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Any, Protocol

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.facts.fields import Field, parse_field
from moeplan.facts.values import Value, known

__all__ = ["OPERATORS", "Condition", "Looker", "evaluate_condition", "fields_of", "parse_condition"]


class Looker(Protocol):
    """What a condition is held against: it looks fields up and knows the other engines of its group."""

    def look(self, field: Field) -> Value:
        """Return a field's value."""
        ...

    def engines(self) -> Iterable[Looker]:
        """Return the engines of the group."""
        ...


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _bytes(value: Any) -> int | None:
    from moeplan.manifests.quantities import parse_bytes

    try:
        return value if type(value) is int else parse_bytes(str(value))
    except InputError:
        return None


def _plain(value: Any) -> Any:
    """Return a value as manifests mean it: numbers by value, texts as they are."""
    if isinstance(value, bool | list | dict):
        return value
    number = _number(value)
    return value if number is None else number


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) is not isinstance(right, bool):
        # A flag given as the text of an environment variable or YAML value.
        return str(left).lower() == str(right).lower()
    return bool(_plain(left) == _plain(right))


def _compared(convert: Callable[[Any], Any], holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    def compare(left: Any, right: Any) -> bool | None:
        a, b = convert(left), convert(right)
        return None if a is None or b is None else holds(a, b)

    return compare


def _matches(left: Any, right: Any) -> bool:
    return any(fnmatchcase(str(left), str(one)) for one in (right if isinstance(right, list) else [right]))


def _contains(left: Any, right: Any) -> bool:
    return right in left if isinstance(left, list | tuple | dict) else str(right) in str(left)


def _divides(left: Any, right: Any) -> bool | None:
    a, b = _number(left), _number(right)
    return None if a is None or b is None or b == 0 else a % b == 0


def _in_range(left: Any, right: Any) -> bool | None:
    from moeplan.manifests.versions import parse_range, parse_version

    return parse_range(str(right)).contains(parse_version(str(left)))


OPERATORS: dict[str, Callable[[Any, Any], bool | None]] = {
    "is": _same,
    "is-not": lambda left, right: not _same(left, right),
    "one-of": lambda left, right: any(_same(left, one) for one in right),
    "none-of": lambda left, right: not any(_same(left, one) for one in right),
    "above": _compared(_number, lambda a, b: a > b),
    "below": _compared(_number, lambda a, b: a < b),
    "at-least": _compared(_number, lambda a, b: a >= b),
    "at-most": _compared(_number, lambda a, b: a <= b),
    "bytes-below": _compared(_bytes, lambda a, b: a < b),
    "bytes-above": _compared(_bytes, lambda a, b: a > b),
    "matches": _matches,
    "contains": _contains,
    "divisible-by": _divides,
    "not-divisible-by": lambda left, right: None if (d := _divides(left, right)) is None else not d,
    "version": _in_range,
}
"""Every operator with two sides; ``matches`` takes shell patterns. ``absent`` and ``present`` have one side."""
_OF_ABSENT = {"is-not": True, "none-of": True}


@attrs.frozen
class Condition:
    """A parsed condition: ``kind`` is the operator or the joining word, ``parts`` what is joined."""

    kind: str
    parts: tuple[Condition, ...] = ()
    field: Field | None = None
    operand: Any = None
    default: Any = None


def parse_condition(value: Any, path: str = "$") -> Condition:
    """Return the condition in JSON values.

    Raises:
        InputError: what is malformed, with its path.
    """
    if not isinstance(value, Mapping):
        raise _refused(path, "not a condition", "an object", value)
    keys = set(value)
    for word in ("all", "any"):
        if keys == {word} and isinstance(value[word], list):
            return Condition(word, tuple(parse_condition(v, f"{path}.{word}[{i}]") for i, v in enumerate(value[word])))
    for word in ("not", "some", "every"):
        if keys == {word}:
            return Condition(word, (parse_condition(value[word], f"{path}.{word}"),))
    if "differs" in keys and keys <= {"differs", "among"}:
        among = (parse_condition(value["among"], f"{path}.among"),) if "among" in keys else ()
        return Condition("differs", among, parse_field(value["differs"], f"{path}.differs"))
    return _test(value, path)


def _test(value: Mapping[str, Any], path: str) -> Condition:
    operators = sorted(set(value) - {"field", "default"})
    if "field" not in value or len(operators) != 1 or operators[0] not in (*OPERATORS, "absent", "present"):
        words = ", ".join((*OPERATORS, "absent", "present"))
        raise _refused(path, "not a condition", f"field and one operator of {words}; or all, any, not, …", value)
    operator = operators[0]
    operand = value[operator]
    if operator in ("absent", "present") and operand is not True:
        raise _refused(f"{path}.{operator}", "not an operand", "true", operand)
    if operator in ("one-of", "none-of") and not isinstance(operand, list):
        raise _refused(f"{path}.{operator}", "not an operand", "an array", operand)
    if isinstance(operand, Mapping) and set(operand) <= {"field", "default"} and "field" in operand:
        other = parse_field(operand["field"], f"{path}.{operator}.field")
        operand = Condition("operand", (), other, None, operand.get("default"))
    return Condition(operator, (), parse_field(value["field"], f"{path}.field"), operand, value.get("default"))


def _refused(path: str, message: str, expected: str, got: Any) -> InputError:
    return InputError(Issue(path, "invalid_condition", message, expected, escape(repr(got), 200)))


def fields_of(condition: Condition) -> Iterator[Field]:
    """Yield the fields that a condition looks at, in its order."""
    if condition.field is not None:
        yield condition.field
    for part in condition.parts:
        yield from fields_of(part)


def evaluate_condition(condition: Condition, subject: Looker) -> bool | None:
    """Return whether a condition holds of ``subject``; None where that depends on what is not known."""
    kind = condition.kind
    if kind == "not":
        result = evaluate_condition(condition.parts[0], subject)
        return None if result is None else not result
    if kind in ("all", "any"):
        return _joined(kind, (evaluate_condition(part, subject) for part in condition.parts))
    if kind in ("some", "every"):
        results = (evaluate_condition(condition.parts[0], engine) for engine in subject.engines())
        return _joined("any" if kind == "some" else "all", results)
    if kind == "differs":
        return _differs(condition, subject)
    return _tested(condition, subject)


def _joined(word: str, results: Iterable[bool | None]) -> bool | None:
    """Join with three values: one that decides decides, whatever else is not known."""
    deciding = word == "any"
    open_ = False
    for result in results:
        if result is deciding:
            return deciding
        open_ = open_ or result is None
    return None if open_ else not deciding


def _look(condition: Condition, subject: Looker) -> Value:
    assert condition.field is not None
    value = subject.look(condition.field)
    return known(condition.default, value.place) if value.state == "absent" and condition.default is not None else value


def _tested(condition: Condition, subject: Looker) -> bool | None:
    left = _look(condition, subject)
    if condition.kind in ("absent", "present"):
        return None if left.state == "unknown" else (left.state == "absent") is (condition.kind == "absent")
    operand = condition.operand
    if isinstance(operand, Condition):
        right = _look(operand, subject)
        if right.state != "known":
            return None if right.state == "unknown" else False
        operand = right.value
    if left.state == "absent":
        return _OF_ABSENT.get(condition.kind, False)
    return None if left.state == "unknown" else OPERATORS[condition.kind](left.value, operand)


def _differs(condition: Condition, subject: Looker) -> bool | None:
    assert condition.field is not None
    engines = [
        engine
        for engine in subject.engines()
        if not condition.parts or evaluate_condition(condition.parts[0], engine) is True
    ]
    values = [engine.look(condition.field) for engine in engines]
    told = [value for value in values if value.state != "unknown"]
    for one in told[1:]:
        if one.state != told[0].state or (one.is_known and not _same(one.value, told[0].value)):
            return True
    return None if len(told) < len(values) > 1 else False
