"""The values of one trial by request: one column of all of them, and where each request's part of it lies."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import attrs

from moeplan.model.columns import WIDE, view

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Group", "Sample"]


@attrs.frozen
class Group:
    """The values of one request, in start order of the requests; ``lost`` counts values beyond every limit."""

    values: Sequence[int]
    lost: int = 0


@attrs.frozen(eq=False)
class Sample:
    """A million requests' values without an object for each; as a sequence it gives a :class:`Group` a request.

    Attributes:
        column: every value, the values of one request side by side; the requests' parts stand in any order.
        starts: for each request in start order, where its values begin in ``column``.
        counts: how many values each request has.
        lost: how many values beyond every limit each request has.
    """

    column: array[int]
    starts: NDArray[Any]
    counts: NDArray[Any]
    lost: NDArray[Any]

    @classmethod
    def of(cls, groups: Sample | Iterable[Group]) -> Sample:
        """Return groups given in start order as a sample; a sample as it is."""
        return groups if isinstance(groups, cls) else cls.of_groups(groups)

    @classmethod
    def of_groups(cls, groups: Iterable[Group]) -> Self:
        """Return groups given in start order as a sample."""
        import numpy as np

        listed = list(groups)
        column = array(WIDE, chain.from_iterable(group.values for group in listed))
        counts = np.array([len(group.values) for group in listed], np.int64)
        return cls(column, np.cumsum(counts) - counts, counts, np.array([group.lost for group in listed], np.int64))

    @property
    def values(self) -> NDArray[Any]:
        """Every value, as a numpy view."""
        return view(self.column)

    def totals(self, edges: Sequence[int]) -> list[int]:
        """Return values and lost values together in each run of requests from one edge to the next."""
        return _between(self.counts + self.lost, edges)

    def lost_between(self, edges: Sequence[int]) -> list[int]:
        """Return lost values in each run of requests from one edge to the next."""
        return _between(self.lost, edges)

    def above(self, limit: int, edges: Sequence[int]) -> list[NDArray[Any]]:
        """Return the values above ``limit``, ascending, for each run of requests from one edge to the next."""
        import numpy as np

        places = np.flatnonzero(self.values > limit)
        found = self.values[places]
        owners = np.flatnonzero(self.counts)
        owners = owners[np.argsort(self.starts[owners], kind="stable")]
        rows = owners[np.searchsorted(self.starts[owners], places, "right") - 1] if len(places) else places
        runs = np.searchsorted(np.array(edges[1:]), rows, "right")
        return [np.sort(found[runs == number]) for number in range(len(edges) - 1)]

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[Group]:
        for start, count, lost in zip(self.starts.tolist(), self.counts.tolist(), self.lost.tolist(), strict=True):
            yield Group(self.column[start : start + count], lost)


def _between(column: NDArray[Any], edges: Sequence[int]) -> list[int]:
    import numpy as np

    sums = np.concatenate(([0], np.cumsum(column)))[list(edges)]
    return [int(part) for part in np.diff(sums)]
