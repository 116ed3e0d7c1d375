"""Requests of a file that holds parallel lists, one item a request, and neither start times nor latencies."""

from __future__ import annotations

from decimal import Decimal
from itertools import groupby
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.importers.request_rows import RequestRow, outcome_of
from moeplan.importers.tool_values import count_at, list_at, refused, seconds_at
from moeplan.importers.trial import TrialInputs
from moeplan.units import seconds_to_ns
from moeplan.wire.strict_json import child

__all__ = ["LISTS", "ListedRequest", "read_listed", "row_of"]

LISTS = ("input_lens", "output_lens", "ttfts", "itls", "errors")
"""The lists that make a file raw data."""
_MOST_ISSUES = 20


@attrs.frozen
class ListedRequest:
    """One request as the file holds it; times in ns.

    Attributes:
        itls: the list's items.
        gaps: the gaps between chunks that they stand for.
        failed: whether the file holds an error of it.
    """

    index: int
    ttft: int
    itls: tuple[int, ...]
    gaps: tuple[int, ...]
    input_tokens: int
    output_tokens: int
    failed: bool

    @property
    def chunks(self) -> int:
        """Arrivals seen; a TTFT of 0.0 stands for none."""
        return 1 + len(self.gaps) if self.ttft else 0


def read_listed(document: dict[str, Any], *, spread: bool = False) -> list[ListedRequest]:
    """Return the requests of one run, in the order of their sending.

    Args:
        document: one run.
        spread: whether a chunk's gap stands divided by its tokens, once for each; equal neighbours are one chunk.

    Raises:
        InputError: lists of unequal length, or values that are none; at most 20 faults.
    """
    columns = {key: list_at(document, key, "$") for key in LISTS}
    count = len(columns["input_lens"])
    for key, column in columns.items():
        if not count or len(column) != count:
            expected, got = str(count or "one or more"), str(len(column))
            raise InputError(Issue(child("$", key), "length_mismatch", "lists of unequal length", expected, got))
    made: list[ListedRequest] = []
    issues: list[Issue] = []
    for index in range(count):
        try:
            made.append(_request(index, {key: column[index] for key, column in columns.items()}, spread))
        except InputError as error:
            issues += error.issues
    if issues:
        raise InputError(*issues[:_MOST_ISSUES])
    return made


def _request(index: int, told: dict[str, Any], spread: bool) -> ListedRequest:
    if type(told["itls"]) is not list:
        raise refused(f"$.itls[{index}]", "a list of seconds", told["itls"])
    if type(told["errors"]) is not str:
        raise refused(f"$.errors[{index}]", "text", told["errors"])
    seconds = [seconds_at(value, f"$.itls[{index}][{place}]") for place, value in enumerate(told["itls"])]
    itls = tuple(seconds_to_ns(value) for value in seconds)
    return ListedRequest(
        index=index,
        ttft=seconds_to_ns(seconds_at(told["ttfts"], f"$.ttfts[{index}]")),
        itls=itls,
        gaps=_gathered(seconds) if spread else itls,
        input_tokens=count_at(told["input_lens"], f"$.input_lens[{index}]"),
        output_tokens=count_at(told["output_lens"], f"$.output_lens[{index}]"),
        failed=bool(told["errors"]),
    )


def _gathered(seconds: list[Decimal]) -> tuple[int, ...]:
    chunks = [list(same) for _, same in groupby(seconds)]
    return tuple(seconds_to_ns(same[0] * len(same)) for same in chunks)


def row_of(request: ListedRequest, inputs: TrialInputs, *, counts: bool) -> RequestRow:
    """Return a request as a row that starts at 0, because the file holds no start times.

    Args:
        request: what the file holds.
        inputs: what was stated.
        counts: whether the server counted the tokens of requests that brought a chunk.
    """
    counted = counts and request.chunks > 0 and not request.failed
    outcome, usage = outcome_of(request.output_tokens, counted, inputs)
    return RequestRow(
        index=request.index,
        start=0,
        queue=0,
        ttft=request.ttft,
        end=request.ttft + sum(request.gaps) if request.chunks else 0,
        gaps=request.gaps if request.chunks else (),
        chunks=request.chunks,
        input_tokens=request.input_tokens,
        # A length that nobody is known to have counted may be the one that was asked for.
        output_tokens=request.output_tokens if counted else 0,
        usage=usage,
        outcome="error" if request.failed else outcome,
    )
