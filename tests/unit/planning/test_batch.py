"""Lines in, lines out: bad ones give a named error in their place and the rest goes on."""

from __future__ import annotations

import io
import json

import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.model.plan import Scenario
from moeplan.planning.batch import MAX_LINE_BYTES, Chunk, plan_chunk, read_chunks
from moeplan.planning.builder import plan
from moeplan.planning.export import plan_bytes

GOOD = b'{"model":"kimi-k3","hardware":"h200","devices":8}'


@pytest.mark.parametrize("form", ["1.0.0", "1.1.0"])
def test_a_good_line_is_the_plan_itself(form: str) -> None:
    batch = plan_chunk(load_registry(), Chunk(1, (GOOD,)), form)
    assert batch.data == plan_bytes(plan(load_registry(), Scenario("kimi-k3", "h200", 8)), form)
    assert batch.errors == 0


BAD = [
    (b"", "empty_line", "$"),
    (b"   \n", "empty_line", "$"),
    (b"not json\n", "invalid_json", "$"),
    (b'{"model":"kimi-k3","hardware":"h200","devices":8,"devices":9}', "duplicate_key", "$.devices"),
    (b'{"model":"kimi-k3","hardware":"h200","devices":NaN}', "not_a_number", "$.devices"),
    (b'{"model":"kimi-k3","hardware":"h200","devices":8.0}', "not_an_integer", "$.devices"),
    (b'{"model":"kimi-k3","hardware":"h200","devices":8e0}', "not_an_integer", "$.devices"),
    (b'{"model":"kimi-k3","hardware":"h200","devices":99999999999999999999}', "integer_out_of_range", "$.devices"),
    (b'{"model":"kimi-k3","hardware":"h200"}', "missing_key", "$.devices"),
    (b'{"model":"kimi-k3","hardware":"h200","devices":8,"color":1}', "unknown_key", "$.color"),
    (b'{"model":"nope","hardware":"h200","devices":8}', "unknown_model", "$.model"),
    (b'{"model":"kimi-k3","hardware":"h200","devices":8,"reserveBps":10000}', "invalid_value", "$.reserveBps"),
    (b'{"model":"kimi-k3","hardware":"h200","devices":8,"runtime":"a b"}', "invalid_runtime", "$.runtime"),
    (b"[1]", "wrong_type", "$"),
    (b"\xff", "wrong_encoding", "$"),
    (b"[" * 70 + b"]" * 70, "too_deep", "$"),
    (None, "too_large", "$"),
]


@pytest.mark.parametrize(("line", "code", "path"), BAD)
def test_a_bad_line_is_named_with_its_number(line: bytes | None, code: str, path: str) -> None:
    batch = plan_chunk(load_registry(), Chunk(7, (GOOD, line, GOOD)), "1.0.0")
    first, second, third = batch.data.splitlines()
    assert first == third
    error = json.loads(second)["error"]
    assert (error["code"], error["path"], error["line"]) == (code, path, 8)
    assert batch.errors == 1


def test_every_fault_of_a_line_is_told() -> None:
    line = b'{"model":1,"devices":8,"x":2}'
    error = json.loads(plan_chunk(load_registry(), Chunk(1, (line,)), "1.0.0").data)["error"]
    assert {issue["path"] for issue in error["issues"]} == {"$.hardware", "$.model", "$.x"}


def test_stream_is_cut_in_order_and_long_lines_are_dropped() -> None:
    long = b'{"model":"' + b"x" * MAX_LINE_BYTES + b'"}\n'
    stream = io.BytesIO((GOOD + b"\n") * 600 + long + long[:-1] * 3 + b"\n" + GOOD)
    chunks = list(read_chunks(stream))
    assert [chunk.first_line for chunk in chunks] == [1, 513]
    lines = [line for chunk in chunks for line in chunk.lines]
    assert len(lines) == 603
    assert lines[599:] == [GOOD + b"\n", None, None, GOOD]


def test_a_line_of_exactly_the_most_bytes_is_read() -> None:
    line = GOOD + b" " * (MAX_LINE_BYTES - len(GOOD) - 1) + b"\n"
    (chunk,) = read_chunks(io.BytesIO(line + GOOD))
    assert plan_chunk(load_registry(), chunk, "1.0.0").errors == 0
    assert list(read_chunks(io.BytesIO(b""))) == []
