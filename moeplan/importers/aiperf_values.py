"""Single values out of one record of aiperf's, each refused by its line and path; gaps of many records at once."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from itertools import chain, islice
from typing import Any

from moeplan.errors import InputError, Issue
from moeplan.importers.exact_ns import many_to_ns, one_to_ns
from moeplan.importers.shown import shown
from moeplan.importers.streamed_lines import at_line
from moeplan.model.columns import view
from moeplan.units import NS_PER_MS

__all__ = [
    "GIVE_THE_RECORDS",
    "asked_tokens",
    "client_input",
    "metadata_path",
    "milliseconds_at",
    "moment_at",
    "ns_at",
    "tokens_at",
    "with_gaps",
]

GIVE_THE_RECORDS = "give profile_export.jsonl, and the summary with --summary"

_MOST_MS = 9 * 10**9
_MOST_TOKENS = 10**9
_MOST_EPOCH_NS = 2**62
_OTHERS = (
    ("aiperf_version", "aiperf's summary (profile_export_aiperf.json)"),
    ("responses", "aiperf's raw export (profile_export_raw.jsonl)"),
    ("phases", "aiperf's phase manifest (phase_manifest.json)"),
)
_SLACK = Fraction(1, 10**6)
_GAPS = "inter_chunk_latency"
_BATCH = 16
"""Records whose gaps are converted at once: few enough for the caches."""
_NUMBERS = frozenset((float, int, Decimal))


def _metrics_of(document: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a record's metrics; ``metadata`` is an object too.

    Raises:
        InputError: no record of aiperf's; other files of the tool's are named.
    """
    metadata, metrics = document.get("metadata"), document.get("metrics")
    if type(metadata) is dict and type(metrics) is dict:
        return metrics
    known = next((title for key, title in _OTHERS if key in document), None)
    message = "not a record of aiperf's" if known is None else f"this is {known}"
    raise InputError(
        Issue(at_line(number), "wrong_file", message, "metadata and metrics in each line", None, GIVE_THE_RECORDS)
    )


def metadata_path(number: int, key: str) -> str:
    """Return where a key of a record's metadata lies."""
    return at_line(number, f"$.metadata.{key}")


def moment_at(metadata: Mapping[str, Any], key: str, number: int) -> int:
    """Return a moment in ns since 1970."""
    value = metadata.get(key)
    if type(value) is not int or not 0 < value < _MOST_EPOCH_NS:
        got = shown(value)
        raise InputError(
            Issue(metadata_path(number, key), "invalid_value", "value refused", "nanoseconds since 1970", got)
        )
    return value


def _value(metrics: Mapping[str, Any], name: str, unit: str, number: int) -> Any:
    """Return a metric's value; None where the record has none.

    Raises:
        InputError: another unit, which a file of another version may have.
    """
    entry = metrics.get(name)
    if entry is None:
        return None
    if type(entry) is not dict or entry.get("unit") != unit:
        got = shown(entry.get("unit") if type(entry) is dict else entry)
        path = at_line(number, f"$.metrics.{name}.unit")
        raise InputError(Issue(path, "unknown_unit", "a unit that this importer does not know", unit, got))
    return entry.get("value")


def _refused(name: str, number: int, expected: str, value: Any) -> InputError:
    path = at_line(number, f"$.metrics.{name}.value")
    return InputError(Issue(path, "invalid_value", "value refused", expected, shown(value)))


def ns_at(metrics: Mapping[str, Any], name: str, number: int) -> int | None:
    """Return a metric of milliseconds as ns; None where the record has none."""
    value = milliseconds_at(metrics, name, number)
    return None if value is None else one_to_ns(value)


def milliseconds_at(metrics: Mapping[str, Any], name: str, number: int) -> int | float | Decimal | None:
    """Return a metric of milliseconds, checked; None where the record has none."""
    value = _value(metrics, name, "ms", number)
    if value is not None and (type(value) not in _NUMBERS or not 0 <= value <= _MOST_MS):
        raise _refused(name, number, f"milliseconds from 0 to {_MOST_MS}", value)
    return value  # type: ignore[no-any-return]


def with_gaps(
    records: Iterable[tuple[int, dict[str, Any]]],
) -> Iterator[tuple[int, dict[str, Any], array[int] | None]]:
    """Yield each record with its gaps between chunks in ns, None where it has none; many are converted at once."""
    remaining = iter(records)
    while batch := list(islice(remaining, _BATCH)):
        lists = [_gap_list(_metrics_of(document, number), number) for number, document in batch]
        column, at = _gap_column(lists, [number for number, _ in batch]), 0
        for (number, document), values in zip(batch, lists, strict=True):
            yield number, document, None if values is None else column[at : at + len(values)]
            at += len(values or ())


def _gap_list(metrics: Mapping[str, Any], number: int) -> list[Any] | None:
    values = _value(metrics, _GAPS, "ms", number)
    if values is None or type(values) is list:
        return values
    raise _refused(_GAPS, number, "a list of milliseconds", type(values).__name__)


def _gap_column(lists: Sequence[list[Any] | None], numbers: Sequence[int]) -> array[int]:
    flat = list(chain.from_iterable(filter(None, lists)))
    if _NUMBERS.issuperset(map(type, flat)):
        with suppress(InputError):
            column = many_to_ns(flat)
            if not column or 0 <= view(column).min() <= view(column).max() <= _MOST_MS * NS_PER_MS:
                return column
    for values, number in zip(lists, numbers, strict=True):
        for value in values or ():
            if type(value) not in _NUMBERS or not 0 <= value <= _MOST_MS:
                raise _refused(_GAPS, number, f"milliseconds from 0 to {_MOST_MS}", value)
    raise AssertionError("one of the values is refused")


def tokens_at(metrics: Mapping[str, Any], name: str, number: int) -> int | None:
    """Return a metric of whole tokens; None where the record has none."""
    value = _value(metrics, name, "tokens", number)
    if value is None or (type(value) is int and 0 <= value <= _MOST_TOKENS):
        return value
    if type(value) not in _NUMBERS or not 0 <= value <= _MOST_TOKENS or value != int(value):
        raise _refused(name, number, f"an integer from 0 to {_MOST_TOKENS}", value)
    return int(value)


def client_input(metrics: Mapping[str, Any], number: int) -> int:
    """Return the prompt tokens as the client counts them; 0 where the record does not tell."""
    counted = tokens_at(metrics, "input_sequence_length", number)
    return (tokens_at(metrics, "error_isl", number) if counted is None else counted) or 0


def asked_tokens(metrics: Mapping[str, Any], counted: int | None, number: int) -> int | None:
    """Return the tokens that the request asked for, from the tool's (counted - asked) / asked * 100; else None.

    Source: aiperf 0.13.0, ``metrics/types/osl_mismatch_metrics.py``.
    """
    percent = _value(metrics, "osl_mismatch_diff_pct", "%", number)
    if percent is None or not counted:
        return None
    if type(percent) not in (int, float, Decimal) or not -100 < percent <= 100 * _MOST_TOKENS:
        raise _refused("osl_mismatch_diff_pct", number, "a percentage above -100", percent)
    near = round(counted * 100 / (100 + float(percent)))
    if near and (counted - near) / near * 100.0 == percent:
        # The tool's own arithmetic gives the very same number.
        return near
    told: Fraction = Fraction(percent)
    asked = round(counted * 100 / (100 + told))
    if not asked or abs(Fraction((counted - asked) * 100, asked) - told) > _SLACK * (1 + abs(told)):
        raise _refused("osl_mismatch_diff_pct", number, f"a whole number of tokens asked for {counted}", percent)
    return asked
