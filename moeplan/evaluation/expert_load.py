"""The load of one record's experts: exact figures of each layer, over the whole record and over stretches of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.model.columns import view
from moeplan.model.observations import EngineCounters, ExpertCounts, ExpertLayer
from moeplan.model.series import ExpertCountTable
from moeplan.units import BASIS_POINTS, ceil_div

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["LEAST_MEAN_SELECTIONS", "ExpertLoad", "LayerLoad", "expected_selections", "expert_load"]

LEAST_MEAN_SELECTIONS = 100
"""Selections an expert must have on average before a layer's load says anything: 100 × experts / top-k tokens."""
_HOT = 2
_NO_OVERFLOW = 1 << 62


@attrs.frozen
class LayerLoad:
    """One layer over a span: selections in all, of the busiest expert, the sum of squares, and counted experts.

    Attributes:
        number: the layer's number in the record.
        experts: how many experts it has.
        selections: sum over its experts.
        greatest: selections of the busiest expert.
        squares: sum of the squared counts.
        inactive: experts that were not selected.
        hot: experts selected more than twice as often as the mean.
    """

    number: int
    experts: int
    selections: int
    greatest: int
    squares: int
    inactive: int
    hot: int

    @property
    def enough(self) -> bool:
        """Whether the span saw enough tokens to say anything of the layer."""
        return self.selections >= LEAST_MEAN_SELECTIONS * self.experts

    @property
    def ratio(self) -> int:
        """Busiest expert over the mean, in basis points rounded up."""
        return ceil_div(BASIS_POINTS * self.greatest * self.experts, max(self.selections, 1))

    @property
    def effective(self) -> int:
        """Effective experts over their number, in basis points rounded down."""
        return BASIS_POINTS * self.selections**2 // (max(self.squares, 1) * self.experts)

    @property
    def inactive_share(self) -> int:
        """Experts not selected over their number, in basis points rounded up."""
        return ceil_div(BASIS_POINTS * self.inactive, self.experts)


@attrs.frozen
class ExpertLoad:
    """A record's layers but those of a drafter: over the whole record, and over each stretch with enough tokens."""

    whole: tuple[LayerLoad, ...]
    stretches: tuple[tuple[LayerLoad, ...], ...]


def expected_selections(layer: ExpertLayer, counters: EngineCounters) -> int | None:
    """Return how often the layer's experts must have been selected by the engine's counters, None where not told.

    Each token that is fed to the model selects ``top_k`` experts in every layer: the prompt's but those cached, and
    the generated ones but the last of each request.
    """
    if counters.cached_prompt_tokens is None:
        return None
    fed = counters.prompt_tokens - counters.cached_prompt_tokens + counters.generation_tokens - counters.requests
    return layer.top_k * fed


def expert_load(payload: ExpertCounts, table: ExpertCountTable) -> ExpertLoad:
    """Return the load of a record's layers, those of a drafter left out. Exact.

    A stretch is as many consecutive intervals as it takes for every layer to have enough tokens; what is left over at
    the end belongs to the last stretch. Where the whole record has too few tokens there is no stretch.
    """
    layers = tuple(layer for layer in payload.layers if not layer.drafter)
    grids = list(_by_interval(layers, table))
    whole = _loads(layers, sum(grids[1:], grids[0])) if grids else _loads(layers, None)
    return ExpertLoad(whole, tuple(_loads(layers, grid) for grid in _stretches(layers, grids)))


def _by_interval(layers: tuple[ExpertLayer, ...], table: ExpertCountTable) -> Iterator[NDArray[Any]]:
    """Yield one grid of counts, layer by expert, for each interval that holds any, in order."""
    import numpy as np

    if not layers or not len(table):
        return
    counts = view(table.selections)
    if int(counts.max()) * len(counts) >= _NO_OVERFLOW:
        counts = counts.astype(object)
    interval, expert, place = view(table.interval), view(table.expert), _places(layers, table)
    width = max(layer.experts for layer in layers)
    order = np.argsort(interval, kind="stable")
    edges = np.flatnonzero(np.diff(interval[order])) + 1
    for rows in np.split(order, edges):
        held = rows[place[rows] >= 0]
        grid: NDArray[Any] = np.zeros((len(layers), width), counts.dtype)
        np.add.at(grid, (place[held], expert[held]), counts[held])
        yield grid


def _places(layers: tuple[ExpertLayer, ...], table: ExpertCountTable) -> NDArray[Any]:
    """Return the place of each row's layer, -1 where the row is of none of them."""
    import numpy as np

    number, expert = view(table.layer), view(table.expert)
    known = sorted((layer.number, place) for place, layer in enumerate(layers))
    numbers, order = (np.array(column, np.int64) for column in zip(*known, strict=True))
    experts = np.array([layer.experts for layer in layers], np.int64)
    found = np.minimum(np.searchsorted(numbers, number), len(numbers) - 1)
    place = order[found]
    held = (numbers[found] == number) & (expert >= 0) & (expert < experts[place])
    return np.where(held, place, -1)


def _stretches(layers: tuple[ExpertLayer, ...], grids: list[NDArray[Any]]) -> list[NDArray[Any]]:
    found: list[NDArray[Any]] = []
    held: NDArray[Any] | None = None
    for grid in grids:
        held = grid if held is None else held + grid
        sums = held.sum(axis=1)
        if all(total >= LEAST_MEAN_SELECTIONS * layer.experts for total, layer in zip(sums, layers, strict=True)):
            found.append(held)
            held = None
    if held is not None and found:
        found[-1] = found[-1] + held
    return found


def _loads(layers: tuple[ExpertLayer, ...], grid: NDArray[Any] | None) -> tuple[LayerLoad, ...]:
    return tuple(
        _load(layer, [] if grid is None else [int(count) for count in grid[row, : layer.experts]])
        for row, layer in enumerate(layers)
    )


def _load(layer: ExpertLayer, counts: list[int]) -> LayerLoad:
    total = sum(counts)
    return LayerLoad(
        number=layer.number,
        experts=layer.experts,
        selections=total,
        greatest=max(counts, default=0),
        squares=sum(count * count for count in counts),
        inactive=layer.experts - sum(count > 0 for count in counts),
        hot=sum(count * layer.experts > _HOT * total for count in counts),
    )
