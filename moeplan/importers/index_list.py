"""Indexes of requests, short enough for a person to read."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["numbered"]

_MOST_RANGES = 20


def numbered(places: Sequence[int]) -> str:
    """Return ascending indexes as ranges: ``12-25, 31``; the first 20 ranges of many."""
    ranges: list[list[int]] = []
    for place in places:
        if ranges and place == ranges[-1][1] + 1:
            ranges[-1][1] = place
        else:
            ranges.append([place, place])
    shown = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges[:_MOST_RANGES])
    left = sum(high - low + 1 for low, high in ranges[_MOST_RANGES:])
    return f"{shown} and {left} more" if left else shown
