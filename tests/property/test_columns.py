"""What is reckoned by whole columns equals what plain Python reckons value by value."""

from __future__ import annotations

from array import array

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moeplan.evaluation import batches
from moeplan.evaluation.batches import batches_hold
from moeplan.evaluation.quantiles import judge_quantile
from moeplan.evaluation.samples import Group
from moeplan.evaluation.trials import chunk_gap_groups, concurrency_peak, concurrency_sustained
from moeplan.model import tables
from moeplan.model.table_checks import gaps_hold, requests_hold
from moeplan.model.tables import REQUEST_OUTCOMES, ChunkGapTable, RequestTable, table_faults
from tests.build import Request, make_tables
from tests.property import quantile_oracle as oracle

ODD = (-(2**63), -1, 0, 1, 2, 7, 2**53, 2**63 - 1)
GAP_COLUMNS = ("request", "ordinal", "gap_ns")
LEVELS = st.sampled_from([0, 9, 10, 11, 12, 13, 50, 2**31, 2**52])
GROUPS = st.lists(st.builds(Group, st.lists(LEVELS, max_size=5).map(tuple), st.integers(0, 1)), max_size=80)
LIMITS = st.sampled_from([0, 9, 10, 11, 12, 49, 50, 2**31, 2**52, 2**70])


@settings(max_examples=300)
@given(GROUPS, st.sampled_from([50, 90, 95, 99]), LIMITS)
def test_quantiles_of_small_trials(groups: list[Group], percent: int, limit: int) -> None:
    assert judge_quantile(groups, percent, limit) == oracle.judge_quantile(groups, percent, limit)


@st.composite
def near_the_boundary(draw: st.DrawFn) -> list[Group]:
    """Twenty batches, alike in size or not, with about as many high values as a share of 5 % allows, at some levels."""
    size = draw(st.sampled_from([100, 400, 1000]))
    alike = draw(st.booleans())
    groups = []
    for _ in range(20):
        count = size if alike else size + draw(st.integers(0, 40))
        high = draw(st.integers(0, size // 12))
        levels = draw(st.lists(st.integers(20, 40), min_size=1, max_size=6))
        values = [10] * (count - high) + [levels[place % len(levels)] for place in range(high)]
        groups += [Group(tuple(values[start::5]), draw(st.integers(0, 9)) // 9) for start in range(5)]
    return groups


@pytest.mark.parametrize("block", [1, 1 << 8])
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(groups=near_the_boundary(), percent=st.sampled_from([90, 95, 99]), limit=st.integers(9, 41))
def test_the_batch_test_near_its_boundary(
    monkeypatch: pytest.MonkeyPatch, block: int, groups: list[Group], percent: int, limit: int
) -> None:
    monkeypatch.setattr(batches, "_FIRST_LIMITS", block)
    assert batches_hold(groups, percent, limit) == oracle.batches_hold(groups, percent, limit)
    assert judge_quantile(groups, percent, limit) == oracle.judge_quantile(groups, percent, limit)


@st.composite
def trials(draw: st.DrawFn) -> list[Request]:
    """Requests in start order, some at one moment, some of no duration, some without chunks."""
    starts = sorted(draw(st.lists(st.integers(0, 12), min_size=1, max_size=12)))
    made = []
    for start in starts:
        gaps = tuple(draw(st.lists(st.integers(0, 5), max_size=4)))
        outcome = draw(st.sampled_from(["complete", "error", "truncated"]))
        made.append(Request(start, 0, gaps, end_ns=start + sum(gaps) + draw(st.integers(0, 9)), outcome=outcome))
    return made


@settings(max_examples=200)
@given(trials())
def test_concurrency_and_gaps_in_start_order(rows: list[Request]) -> None:
    requests, gaps = make_tables(rows)
    levels = oracle.time_at_level(requests)
    assert concurrency_peak(requests) == max(levels)
    window = sum(levels.values())
    held = [level for level in levels if 10 * sum(levels[other] for other in levels if other >= level) >= 9 * window]
    assert concurrency_sustained(requests) == (max(held) if window else max(levels))
    assert [(tuple(group.values), group.lost) for group in chunk_gap_groups(requests, gaps)] == [
        (tuple(group.values), group.lost) for group in oracle.chunk_gap_groups(requests, gaps)
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-1, 2**33)), max_size=12))
def test_gaps_are_kept_as_rows_or_as_counts(rows: list[tuple[int, int, int]]) -> None:
    """In order exactly where each row continues the request before it or begins a later one with 1."""
    columns = [array("q", (row[place] for row in rows)) for place in range(3)]
    table = ChunkGapTable(*columns)
    ordered = all(
        (place == before[1] + 1) if request == before[0] else (request > before[0] and place == 1)
        for before, (request, place, _) in zip([(-1, 0, 0), *rows], rows, strict=False)
    )
    assert (table.disorder is None) is ordered
    assert [table.request, table.ordinal, table.gap_ns] == columns


@st.composite
def odd_tables(draw: st.DrawFn) -> tuple[RequestTable, ChunkGapTable, int]:
    """Sound tables, of which up to three values are then set to something else."""
    requests, gaps = make_tables(draw(trials()))
    names = [field.name for field in attrs.fields(RequestTable) if field.name != "outcome"]
    columns = [list(getattr(requests, name)) for name in names] + [list(getattr(gaps, name)) for name in GAP_COLUMNS]
    filled = [column for column in columns if column]
    for _ in range(draw(st.integers(0, 3))):
        column = filled[draw(st.integers(0, len(filled) - 1))]
        column[draw(st.integers(0, len(column) - 1))] = draw(st.sampled_from(ODD))
    made = [array("q", column) for column in columns]
    changed = RequestTable(**dict(zip(names, made, strict=False)), outcome=requests.outcome)
    return changed, ChunkGapTable(*made[-3:]), draw(st.sampled_from([40, 10**6]))


@settings(max_examples=500)
@given(odd_tables())
def test_tables_hold_exactly_where_no_row_is_at_fault(case: tuple[RequestTable, ChunkGapTable, int]) -> None:
    requests, gaps, duration = case
    faults = list(tables._request_faults(requests, duration))
    assert requests_hold(requests, duration, REQUEST_OUTCOMES) is not bool(faults)
    if not faults:
        assert gaps_hold(requests, gaps) is not bool(list(tables._gap_faults(requests, gaps)))
    assert bool(list(table_faults(requests, gaps, duration))) is bool(
        faults or list(tables._gap_faults(requests, gaps))
    )
