"""Sums of columns that outgrow 64 bits, against Python's integers."""

from __future__ import annotations

import random
from array import array

import numpy as np
import pytest

from moeplan.model.columns import column_of, exact_sum, exact_sum_of_squares, narrow, run_sums, view


@pytest.mark.parametrize("most", [1, 2**20, 2**26, 2**31 - 1, 2**51, 2**52 - 1, 2**52, 2**62])
@pytest.mark.parametrize("count", [0, 1, 2048, 5001])
def test_sums_are_exact(most: int, count: int) -> None:
    draw = random.Random(most)
    values = [most - draw.randrange(2) * draw.randrange(most) for _ in range(count)]
    column = np.array(values, np.int64)
    assert exact_sum(column) == sum(values)
    assert exact_sum(-column) == -sum(values)
    assert exact_sum_of_squares(column) == sum(value**2 for value in values)
    if most < 2**31:
        assert exact_sum_of_squares(column.astype(np.int32)) == sum(value**2 for value in values)


def test_sums_of_integers_beyond_64_bits() -> None:
    column = np.array([2**70, 3], object)
    assert (exact_sum(column), exact_sum_of_squares(column)) == (2**70 + 3, 2**140 + 9)


def test_a_column_is_narrow_where_all_fits() -> None:
    assert narrow([1, 2**31 - 1]).typecode == "i"
    assert narrow([1, 2**31]) == array("q", [1, 2**31])
    assert narrow(array("q", [-5])).typecode == "i"
    assert narrow([]).typecode == "i"
    assert column_of(view(array("q", [1, 2, 3]))[::2]) == array("q", [1, 3])
    with pytest.raises(OverflowError):
        narrow([2**63])


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_sums_of_runs(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moeplan.model.columns._RUN_VALUES", block)
    draw = random.Random(block)
    runs = [[draw.randrange(2**31 - 1) for _ in range(draw.randrange(1, 5))] for _ in range(30)]
    values = np.array([value for run in runs for value in run], np.int32)
    assert run_sums(values, np.array([len(run) for run in runs])).tolist() == [sum(run) for run in runs]
    assert run_sums(values[:0], np.array([], np.int64)).tolist() == []
