"""The request records of a guidellm report.

Source: guidellm 0.8.1, ``schemas/base/info.py`` and ``schemas/base/request_stats.py``. Times are binary64 seconds since
the epoch, 238 ns apart; the file's decimals are their shortest spelling, so that each is read back as the number it was
before any difference is taken.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.importers.tool_values import count_at, list_at, object_at, refused
from moeplan.units import NS_PER_S
from moeplan.wire.strict_json import child

__all__ = ["STATUSES", "GuidellmRequest", "Nanoseconds", "moment_at", "read_requests"]

Nanoseconds = Fraction
STATUSES = ("successful", "errored", "incomplete")
_MOST_EPOCH = 2**33
_MOST_ISSUES = 20


@attrs.frozen
class GuidellmRequest:
    """One request; moments in exact nanoseconds since the epoch.

    Attributes:
        status: the list it stands in, one of :data:`STATUSES`.
        due: when the strategy wanted it sent.
        end: when the tool was done with it.
        iterations: lines that brought text.
        input_tokens: the server's count, or the tool's own.
        server_tokens: the server's count, or the length asked for where the server sent none; None where it failed.
    """

    status: str
    start: Nanoseconds
    due: Nanoseconds | None
    first_token: Nanoseconds | None
    last_token: Nanoseconds | None
    end: Nanoseconds
    iterations: int
    input_tokens: int
    server_tokens: int | None

    @property
    def succeeded(self) -> bool:
        """Whether the tool counts it as a success."""
        return self.status == "successful"

    @property
    def tokens(self) -> int:
        """Generated tokens as the tool takes them: the count, else one for each line with text."""
        return self.iterations if self.server_tokens is None else self.server_tokens

    @property
    def line_for_each_token(self) -> bool:
        """Whether as many lines with text came as the count has tokens; empty ones and the stream's end show none."""
        return self.iterations >= self.tokens


def read_requests(lists: dict[str, Any], path: str) -> tuple[GuidellmRequest, ...]:
    """Return every request that a benchmark lists, in the order of their sending.

    Raises:
        InputError: records that are none, or whose times run backwards; at most 20 faults.
    """
    made: list[GuidellmRequest] = []
    issues: list[Issue] = []
    for status in STATUSES:
        for place, record in enumerate(list_at(lists, status, path)):
            at = f"{path}.{status}[{place}]"
            try:
                made.append(_request(status, record, at))
            except InputError as error:
                issues += error.issues
    if issues:
        raise InputError(*issues[:_MOST_ISSUES])
    return tuple(sorted(made, key=lambda request: request.start))


def moment_at(value: Any, path: str) -> Nanoseconds:
    """Return seconds since the epoch as exact nanoseconds of the binary64 number that the tool held.

    Raises:
        InputError: no such time.
    """
    if type(value) not in (int, Decimal) or not 0 < value < _MOST_EPOCH:
        raise refused(path, "seconds since the epoch", value)
    return Fraction(float(value)) * NS_PER_S


def _request(status: str, record: Any, path: str) -> GuidellmRequest:
    if type(record) is not dict:
        raise refused(path, "a JSON object", record)
    info = object_at(record, "info", path)
    timings = object_at(info, "timings", child(path, "info"))
    at = f"{path}.info.timings"

    def moment(*keys: str) -> Nanoseconds | None:
        key = next((key for key in keys if timings.get(key) is not None), None)
        return None if key is None else moment_at(timings[key], child(at, key))

    start, end = moment("request_start", "resolve_start"), moment("request_end", "resolve_end")
    if start is None or end is None:
        raise InputError(Issue(at, "invalid_value", "a request without start or end", "request_start and resolve_end"))
    first, last = moment("first_token_iteration"), moment("last_token_iteration")
    moments = [value for value in (start, first, last, end) if value is not None]
    if moments != sorted(moments):
        raise InputError(Issue(at, "times_reversed", "the request's times run backwards", "start, tokens, end"))
    output = object_at(record, "output_metrics", path)
    asked = object_at(record, "input_metrics", path)
    return GuidellmRequest(
        status=status,
        start=start,
        due=moment("targeted_start"),
        first_token=first,
        last_token=last,
        end=end,
        iterations=_count(timings, "token_iterations", at) or 0,
        input_tokens=_count(asked, "text_tokens", f"{path}.input_metrics") or 0,
        server_tokens=_count(output, "text_tokens", f"{path}.output_metrics") if status == "successful" else None,
    )


def _count(parent: dict[str, Any], key: str, path: str) -> int | None:
    value = parent.get(key)
    return None if value is None else count_at(value, child(path, key))
