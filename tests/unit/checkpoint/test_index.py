from __future__ import annotations

import json
from typing import Any

import pytest

from moeplan.checkpoint.index import compare_index
from moeplan.model.checkpoint import CheckpointIndex, Tensor
from moeplan.model.finding import Finding

TENSORS = tuple(
    Tensor(name=name, file=file, dtype="U8", shape=(size,), bytes=size)
    for name, file, size in (("a", "one", 3), ("b", "one", 4), ("c", "two", 5))
)
MAP = {"a": "one", "b": "one", "c": "two"}


def compared(value: Any, tensors: tuple[Tensor, ...] = TENSORS) -> tuple[CheckpointIndex, tuple[Finding, ...]]:
    return compare_index(value if isinstance(value, bytes) else json.dumps(value).encode(), tensors)


def codes(value: Any, tensors: tuple[Tensor, ...] = TENSORS) -> list[tuple[str, str | None]]:
    index, findings = compared(value, tensors)
    assert index.agrees == all(finding.severity != "error" for finding in findings)
    return [(finding.code, finding.where) for finding in findings]


def test_agrees() -> None:
    index, findings = compared({"metadata": {"total_size": 12, "total_parameters": 12}, "weight_map": MAP})
    assert index == CheckpointIndex(file="model.safetensors.index.json", total_size=12, agrees=True)
    assert findings == ()


@pytest.mark.parametrize("total", [0, 11, 13])
def test_total_size_differs(total: int) -> None:
    index, findings = compared({"metadata": {"total_size": total}, "weight_map": MAP})
    assert (index.total_size, index.agrees) == (total, False)
    assert [finding.code for finding in findings] == ["total_size_differs"]
    assert f"states {total} bytes; the headers hold 12 bytes" in findings[0].message


def test_no_total_size_is_a_warning() -> None:
    for value in ({"weight_map": MAP}, {"metadata": {}, "weight_map": MAP}):
        index, findings = compared(value)
        assert (index.total_size, index.agrees) == (None, True)
        assert [(finding.code, finding.severity) for finding in findings] == [("index_without_total_size", "warning")]


def test_missing_tensor() -> None:
    value = {"metadata": {"total_size": 12}, "weight_map": {**MAP, "d": "two"}}
    assert codes(value) == [("tensor_missing", "two")]


def test_tensor_in_other_file() -> None:
    value = {"metadata": {"total_size": 12}, "weight_map": {**MAP, "b": "two"}}
    assert codes(value) == [("tensor_in_other_file", "two")]


def test_extra_tensor() -> None:
    value = {"metadata": {"total_size": 12}, "weight_map": {"a": "one", "c": "two"}}
    assert codes(value) == [("tensor_not_in_index", "one")]


def test_tensor_a_second_time() -> None:
    twice = (*TENSORS, Tensor(name="c", file="three", dtype="U8", shape=(5,), bytes=5))
    assert codes({"metadata": {"total_size": 17}, "weight_map": MAP}, twice) == [("tensor_repeated", "three")]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"weight_map":{"a":"one","a":"two"}}',
        {},
        {"weight_map": []},
        {"weight_map": {"a": 1}},
        {"metadata": {"total_size": 12.0}, "weight_map": MAP},
        {"metadata": {"total_size": "12"}, "weight_map": MAP},
        {"metadata": {"total_size": True}, "weight_map": MAP},
        {"metadata": {"total_size": -1}, "weight_map": MAP},
    ],
)
def test_an_unreadable_index_agrees_with_nothing(value: Any) -> None:
    index, findings = compared(value)
    assert (index.total_size, index.agrees) == (None, False)
    assert [(finding.code, finding.severity) for finding in findings] == [("index_unreadable", "error")]


def test_hostile_names_are_escaped_and_findings_bounded() -> None:
    value = {"metadata": {"total_size": 12}, "weight_map": {**MAP, **{f"\x1b{n}\u202e": "\n" for n in range(150)}}}
    _, findings = compared(value)
    assert len(findings) == 101
    assert findings[-1].message == "and 50 more disagreements with the index"
    assert all(finding.message.isprintable() for finding in findings)
