"""Conditions: every operator with both answers, and Kleene's three-valued tables for what joins them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.facts.conditions import OPERATORS, Looker, evaluate_condition, parse_condition
from moeplan.facts.fields import Field
from moeplan.facts.values import Value, absent, known, unknown


class Asked:
    """Answers by the field's name: ``absent``, ``unknown``, or what it was made with."""

    def __init__(self, group: Iterable[Asked] = (), **values: Any) -> None:
        self.values = values
        self.group = tuple(group)

    def look(self, field: Field) -> Value:
        if field.name == "UNKNOWN":
            return unknown()
        return known(self.values[field.name]) if field.name in self.values else absent()

    def engines(self) -> Iterable[Looker]:
        return self.group


def holds(condition: dict[str, Any], asked: Asked | None = None, **values: Any) -> bool | None:
    return evaluate_condition(parse_condition(condition), asked or Asked(**values))


@pytest.mark.parametrize(
    ("operator", "operand", "yes", "no"),
    [
        ("is", "0.88", "0.880", "0.89"),
        ("is", "8", 8, 9),
        ("is", True, "True", "false"),
        ("is", "auto", "auto", "fp8"),
        ("is-not", "auto", "fp8", "auto"),
        ("one-of", ["a", "1"], 1, "b"),
        ("none-of", ["0.0.0.0", ""], "192.0.2.1", "0.0.0.0"),
        ("above", "0.88", "0.9", "0.88"),
        ("below", 128, "127", 128),
        ("at-least", "8", 8, 7),
        ("at-most", "8", 8, 9),
        ("bytes-below", "16Gi", "15Gi", 16 * 2**30),
        ("bytes-above", "1G", "1Gi", "1000M"),
        ("matches", "*-20260801*", "1.1.0-20260801", "1.1.0-20260802"),
        ("matches", ["fp8*", "int8"], "fp8_e4m3", "auto"),
        ("contains", "IPC_LOCK", ["SYS_PTRACE", "IPC_LOCK"], ["SYS_PTRACE"]),
        ("contains", "cuda", "rc,cuda_copy", "rc"),
        ("divisible-by", 8, "1536", 1540),
        ("not-divisible-by", "128", 192, 256),
        ("version", ">=0.27,<0.33", "0.32.0", "0.33.0"),
    ],
)
def test_operator(operator: str, operand: Any, yes: Any, no: Any) -> None:
    condition = {"field": "environment A", operator: operand}
    assert holds(condition, A=yes) is True
    assert holds(condition, A=no) is False
    assert holds({"field": "environment UNKNOWN", operator: operand}) is None


def test_every_operator_has_a_case() -> None:
    tested = {mark.args[1][i][0] for mark in test_operator.pytestmark for i in range(len(mark.args[1]))}
    assert tested == set(OPERATORS)


def test_what_is_no_number_cannot_be_compared() -> None:
    assert holds({"field": "environment A", "above": "1"}, A="auto") is None
    assert holds({"field": "environment A", "bytes-below": "1Gi"}, A="64 GB") is None
    assert holds({"field": "environment A", "divisible-by": 0}, A="8") is None


def test_absent() -> None:
    assert holds({"field": "environment A", "absent": True}) is True
    assert holds({"field": "environment A", "present": True}) is False
    assert holds({"field": "environment A", "is-not": "0"}) is True
    assert holds({"field": "environment A", "is": "0"}) is False
    assert holds({"field": "environment A", "below": "5", "default": "1"}) is True
    assert holds({"field": "environment UNKNOWN", "absent": True}) is None
    assert holds({"field": "environment UNKNOWN", "below": "5", "default": "1"}) is None


def test_a_field_against_a_field() -> None:
    condition = {"field": "environment A", "is-not": {"field": "environment B"}}
    assert holds(condition, A="30000", B=30000) is False
    assert holds(condition, A="30000", B=8000) is True
    assert holds(condition, A="30000") is False, "nothing to compare with is no difference"
    defaulted = {"field": "environment A", "is-not": {"field": "environment B", "default": "8000"}}
    assert holds(defaulted, A="30000") is True


T, F, U = (
    {"field": "environment A", "present": True},
    {"field": "environment B", "present": True},
    {"field": "environment UNKNOWN", "present": True},
)


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (T, T, True, True), (T, F, False, True), (F, F, False, False),
        (T, U, None, True), (F, U, False, None), (U, U, None, None),
    ],
)  # fmt: skip
def test_kleene(left: dict[str, Any], right: dict[str, Any], both: bool | None, either: bool | None) -> None:
    for pair in ([left, right], [right, left]):
        assert holds({"all": pair}, A=1) is both
        assert holds({"any": pair}, A=1) is either


def test_not() -> None:
    assert holds({"not": T}, A=1) is False
    assert holds({"not": F}, A=1) is True
    assert holds({"not": U}) is None


def test_quantifiers_and_difference_over_a_group() -> None:
    group = [Asked(role="prefill", X="1"), Asked(role="decode"), Asked(role="server", X="9")]
    asked = Asked(group)
    workers = {"field": "environment role", "one-of": ["prefill", "decode"]}
    assert holds({"some": {"field": "environment X", "is": "1"}}, asked) is True
    assert holds({"every": {"field": "environment X", "present": True}}, asked) is False
    assert holds({"differs": "environment X", "among": workers}, asked) is True
    assert holds({"differs": "environment role", "among": {"field": "environment X", "is": "1"}}, asked) is False
    assert holds({"differs": "environment UNKNOWN"}, asked) is None
    assert holds({"differs": "environment X"}, Asked([Asked(X="1"), Asked(X=1)])) is False


@pytest.mark.parametrize(
    "wrong",
    [
        [], {}, {"all": {}}, {"field": "environment A"}, {"field": "environment A", "is": 1, "above": 2},
        {"field": "environment A", "bigger": 1}, {"field": "environment", "is": 1}, {"field": "nowhere A", "is": 1},
        {"field": "environment A", "absent": False}, {"field": "environment A", "one-of": "a"},
        {"all": [{"field": "pod a[b", "present": True}]}, {"is": 1},
    ],
)  # fmt: skip
def test_malformed_condition_is_named(wrong: Any) -> None:
    with pytest.raises(InputError) as caught:
        parse_condition(wrong, "X-1.when")
    assert caught.value.issues[0].path.startswith("X-1.when")
    assert caught.value.issues[0].code in ("invalid_condition", "invalid_field")
