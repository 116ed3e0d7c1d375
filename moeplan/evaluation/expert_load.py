"""The load of one record's experts: exact figures of each layer, over the whole record and over stretches of it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.model.columns import exact_sum, exact_sum_of_squares, view
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
    rows = _rows(layers, table)
    edges = _edges(layers, rows)
    stretches = tuple(_loads(layers, rows.part(start, stop)) for start, stop in pairwise(edges))
    return ExpertLoad(_loads(layers, rows), stretches)


@attrs.frozen(eq=False)
class _Rows:
    """Counts by interval, with the place of each one's layer; no more memory than the table's own rows take."""

    interval: NDArray[Any]
    place: NDArray[Any]
    expert: NDArray[Any]
    counts: NDArray[Any]

    def part(self, start: int, stop: int) -> _Rows:
        held = slice(start, stop)
        return _Rows(self.interval[held], self.place[held], self.expert[held], self.counts[held])


def _rows(layers: tuple[ExpertLayer, ...], table: ExpertCountTable) -> _Rows:
    import numpy as np

    place = _places(layers, table) if layers else np.full(len(table), -1)
    kept = np.flatnonzero(place >= 0)
    kept = kept[np.argsort(view(table.interval)[kept], kind="stable")]
    counts = view(table.selections)[kept]
    if len(counts) and int(counts.max()) * len(counts) >= _NO_OVERFLOW:
        counts = counts.astype(object)
    return _Rows(view(table.interval)[kept], place[kept], view(table.expert)[kept], counts)


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


def _edges(layers: tuple[ExpertLayer, ...], rows: _Rows) -> list[int]:
    """Return the rows at which stretches begin and the last one ends; none where there is no stretch."""
    import numpy as np

    enough = [LEAST_MEAN_SELECTIONS * layer.experts for layer in layers]
    left, short, edges = list(enough), len(enough), [0]
    stops = [*(np.flatnonzero(np.diff(rows.interval)) + 1).tolist(), len(rows.interval)] if len(rows.interval) else []
    for start, stop in pairwise([0, *stops]):
        held = slice(start, stop)
        for place, count in zip(rows.place[held].tolist(), rows.counts[held].tolist(), strict=True):
            short -= left[place] > 0 >= left[place] - count
            left[place] -= count
        if not short:
            edges.append(stop)
            left, short = list(enough), len(enough)
    return [*edges[:-1], len(rows.interval)] if len(edges) > 1 else []


def _loads(layers: tuple[ExpertLayer, ...], rows: _Rows) -> tuple[LayerLoad, ...]:
    import numpy as np

    order = np.lexsort((rows.expert, rows.place))
    place, expert, counts = rows.place[order], rows.expert[order], rows.counts[order]
    begins = np.flatnonzero(np.concatenate(([True], (place[1:] != place[:-1]) | (expert[1:] != expert[:-1]))))
    sums = np.add.reduceat(counts, begins) if len(counts) else counts
    edges = np.searchsorted(place[begins] if len(counts) else place, np.arange(len(layers) + 1)).tolist()
    return tuple(_load(layer, sums[start:stop]) for layer, (start, stop) in zip(layers, pairwise(edges), strict=True))


def _load(layer: ExpertLayer, counts: NDArray[Any]) -> LayerLoad:
    """Return the load of a layer from the counts of the experts that were selected."""
    total = exact_sum(counts)
    return LayerLoad(
        number=layer.number,
        experts=layer.experts,
        selections=total,
        greatest=int(counts.max()) if len(counts) else 0,
        squares=exact_sum_of_squares(counts),
        inactive=layer.experts - int((counts > 0).sum()),
        # count × experts > 2 × total, without a product that may not fit
        hot=int((counts > _HOT * total // layer.experts).sum()),
    )
