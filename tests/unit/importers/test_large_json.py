"""Large files column by column: what the strict reader gives, value for value; anything odd is left to it."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moeplan.errors import InputError
from moeplan.importers import vllm_bench_columns
from moeplan.importers.large_json import Rows, exact_ns, members, nanosecond_rows, nanoseconds
from moeplan.importers.tool_json import parse_tool_json
from moeplan.importers.vllm_bench_columns import Columns, read_detailed
from tests.unit.importers.made import encoded, result

TIES = (
    "0.0000000005", "0.0000000015", "0.00000000050000000000000000000001", "0.00000000049999999999999999999999",
    "5e-10", "15E-10", "123.4567890125", "123.4567890135", "1e-300", "-0.0", "0", "7", "1234567.1234567895",
    "9999999.5",
    "4503599.6273704965", "0.99999999999999999999", "0.0183456789012345",
)  # fmt: skip
"""Decimals at a tie between two nanoseconds, just beside one, or where binary64 has less than nanoseconds."""


def ns_of(text: str) -> int:
    """Round half to even by hand, from the decimal's own digits."""
    scaled = Decimal(text).scaleb(9)
    whole = int(scaled)
    rest = scaled - whole
    return whole + (rest > Decimal("0.5") or (rest == Decimal("0.5") and whole % 2 == 1))


def text_of(column: str, data: bytes) -> Any:
    parts = members(data)
    assert parts is not None
    return parts[column]


def rows_of(data: bytes, key: str) -> Rows | None:
    """Return the rows where the rest, too, is sound."""
    rows = nanosecond_rows(data, key, 10**7)
    parts = None if rows is None else members(rows.rest)
    return rows if parts is not None and bytes(parts.get(key, b"")) == b"0" else None


def test_every_decimal_is_rounded_from_its_own_digits() -> None:
    data = f'{{"a": [{", ".join(TIES)}], "b": [[], [{",".join(TIES)}], [1.5]]}}'.encode()
    wanted = [ns_of(text) for text in TIES]
    found = nanoseconds(text_of("a", data), 10**7)
    assert found is not None
    assert found.tolist() == wanted
    rows = rows_of(data, "b")
    assert rows is not None
    assert rows.counts.tolist() == [0, len(TIES), 1]
    assert list(rows.column) == [*wanted, 1_500_000_000]
    assert [exact_ns(Decimal(text)) for text in TIES] == wanted


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 10**7 - 1), st.text("0123456789", min_size=1, max_size=14)), max_size=8))
def test_random_decimals(parts: list[tuple[int, str]]) -> None:
    written = [f"{whole}.{digits}" for whole, digits in parts] + [f"0.{digits}5" for _, digits in parts]
    found = nanoseconds(text_of("a", f'{{"a":[{",".join(written)}]}}'.encode()), 10**7)
    assert found is not None
    assert found.tolist() == [ns_of(text) for text in written]


@pytest.mark.parametrize("block", [1, 12, 1000])
def test_long_gaps_and_several_blocks(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr("moeplan.importers.large_json._BLOCK_BYTES", block)
    rows = rows_of(b'{"a":[[0.1] , [2.147483647],[0.2,2.147483648],[],\n[1]], "b":[[3]]}', "a")
    assert rows is not None
    assert (rows.counts.tolist(), rows.column.typecode) == ([1, 1, 2, 0, 1], "q")
    assert list(rows.column) == [100_000_000, 2_147_483_647, 200_000_000, 2_147_483_648, 1_000_000_000]


@pytest.mark.parametrize(
    "text",
    ["[true]", '["1"]', "[null]", "{}", "[-1]", "[1e7, 10000001]", "[1e999]", "[[1]]"],
)
def test_no_list_of_seconds(text: str) -> None:
    assert nanoseconds(text_of("a", f'{{"a":{text}}}'.encode()), 10**7) is None


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "[[1],]",
        "[[1] [2]]",
        "[[1],[2,]]",
        "[,[1]]",
        '[["1"]]',
        "[[[1]]]",
        "[[1]],[2]]",
        "[[1,true]]",
        "[[-1]]",
        "[1]",
        "7",
    ],
)
@pytest.mark.parametrize("block", [1, 1000])
def test_no_list_of_lists(text: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moeplan.importers.large_json._BLOCK_BYTES", block)
    assert rows_of(f'{{"a":{text},"b":[[1]]}}'.encode(), "a") is None


@pytest.mark.parametrize(
    "data", [b'{"b":"\\"a","a":[[1]]}', b'{"x\\"a":[[1]],"a":0}', b'{"a":[[1]],"a":[[2]]}', b'{"b":[[1]]}', b"{}"]
)
def test_a_list_that_is_not_there_once(data: bytes) -> None:
    assert rows_of(data, "a") is None


@pytest.mark.parametrize(
    ("data", "sound"),
    [
        (b'{"a": 1, "b" : [1, 2] }\n', True),
        (b"{}", True),
        (b'{"a":1,"a":1}', False),
        (b'{"a":1,"b":2,"a":1}', False),
        (b'{"a":1,"\\u0061":2}', False),
        (b'{"a":1} {}', False),
        (b"[1]", False),
        (b'{"a":NaN}', False),
        (b'{"a":01}', False),
        (b'{"a":', False),
    ],
)
def test_members_are_all_or_nothing(data: bytes, sound: bool) -> None:
    assert (members(data) is not None) is sound


def same(left: Columns, right: Columns) -> None:
    for field in attrs.fields(Columns):
        one, two = getattr(left, field.name), getattr(right, field.name)
        assert np.array_equal(np.asarray(one), np.asarray(two)), field.name


@pytest.mark.parametrize("spaced", [True, False])
def test_a_whole_file_by_columns_and_strictly(spaced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, count = random.Random(7), 40
    document = result(
        num_prompts=count, generated_texts=["a \"b\" [1, 2], ü\n"] * count, errors=[""] * (count - 1) + ["reset"],
        input_lens=[10] * count, output_lens=[3] * count, queue_times=[draw.random() for _ in range(count)],
        ttfts=[draw.random() for _ in range(count)], latencies=[draw.random() * 30 for _ in range(count)],
        itls=[[draw.random() for _ in range(draw.randrange(5))] for _ in range(count)],
        start_times=[12_345_678.9 + draw.random() for _ in range(count)],
    )  # fmt: skip
    data = json.dumps(document, separators=(", ", ": ") if spaced else (",", ":")).encode()
    rest, columns = read_detailed(data)
    assert "itls" not in rest
    monkeypatch.setattr(vllm_bench_columns, "_plain_columns", lambda _data: None)
    whole, strict = read_detailed(data)
    same(columns, strict)
    assert rest == {key: whole[key] for key in rest}
    assert set(whole) - set(rest) == {
        "input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "errors",
        "generated_texts",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"ttfts": [0.1, 0.2, 0.3]}, "length_mismatch"),
        ({"itls": [[0.1], [0.2], [0.3], 0.4]}, "invalid_value"),
        ({"errors": ["", "", "", None]}, "invalid_value"),
        ({"output_lens": [3, 3, 3, 2.0]}, "invalid_value"),
        ({"input_lens": [3, 3, 3, -2]}, "invalid_value"),
        ({"num_prompts": 5}, "length_mismatch"),
        ({"latencies": "absent"}, "raw_data_missing"),
        ({"extra": {"deep": [float("nan")]}}, "not_a_number"),
    ],
)
def test_the_strict_reader_names_what_is_wrong(changed: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        read_detailed(encoded(**changed))
    assert code in [issue.code for issue in caught.value.issues]


def test_a_key_given_twice_is_refused() -> None:
    data = encoded().replace(b'{"date"', b'{"itls": [], "date"')
    with pytest.raises(InputError) as caught:
        read_detailed(data)
    assert caught.value.issues[0].code == "duplicate_key"
    assert parse_tool_json(encoded())["date"] == "20261130-172949"
