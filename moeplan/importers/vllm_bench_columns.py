"""The raw columns of a ``vllm bench serve --save-detailed`` file, request by request in the file's order."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.large_json import Rows, exact_ns, integers, members, nanosecond_rows, nanoseconds, texts
from moeplan.importers.shown import shown
from moeplan.importers.tool_json import MAX_TOOL_BYTES, parse_tool_json
from moeplan.model.columns import narrow
from moeplan.wire.strict_json import child

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MOST_SECONDS", "Columns", "read_detailed"]

MOST_SECONDS = 10**7
_MOST_CLOCK_SECONDS = 9 * 10**9
"""Seconds whose nanoseconds fit into 64 bits: 285 years on the tool's own clock."""
_MOST_TOKENS = 10**9
_MOST_ISSUES = 20
_COLUMNS = ("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "errors")
_TOKENS = ("input_tokens", "output_tokens")
_TEXTS = ("errors", "generated_texts")
_RAW = "run 'vllm bench serve' with --save-result --save-detailed (vLLM 0.32); aggregates satisfy no criterion"


@attrs.frozen(eq=False)
class Columns:
    """One entry a request; times in ns.

    Attributes:
        start: when it was sent, on the tool's own clock.
        queue: how long the client held it back before.
        ttft: from sending to the first chunk; 0 where there was none, or no time was taken.
        latency: from sending to the end, as the tool has it; 0 where it never saw the request end.
        gap_counts: how many gaps between chunks it has.
        gaps: the gaps of all requests, one request's after the other's.
        failed: whether the tool reports an error or never saw the request end; an HTTP error without a reason phrase
            leaves ``errors`` empty, and a success never has latency 0.
        queued: whether the file holds ``queue_times``.
    """

    start: NDArray[Any]
    queue: NDArray[Any]
    ttft: NDArray[Any]
    latency: NDArray[Any]
    gap_counts: NDArray[Any]
    gaps: array[int]
    input_tokens: NDArray[Any]
    output_tokens: NDArray[Any]
    failed: NDArray[Any]
    queued: bool


def read_detailed(data: bytes) -> tuple[dict[str, Any], Columns]:
    """Return the file's members, the long lists left out or not, and its columns.

    Raises:
        InputError: not such a file, or without raw data; with JSON paths.
    """
    found = _plain_columns(data)
    if found is not None:
        return found
    document = parse_tool_json(data)
    _require_raw(document)
    return document, _strict_columns(document)


def _plain_columns(data: bytes) -> tuple[dict[str, Any], Columns] | None:
    """Return what :func:`read_detailed` does from a file in which all is as the tool writes it; else None."""
    rows = nanosecond_rows(data, "itls", MOST_SECONDS) if len(data) <= MAX_TOOL_BYTES else None
    parts = None if rows is None else members(rows.rest)
    if rows is None or parts is None or bytes(parts.get("itls", b"")) != b"0":
        return None
    if not parts.keys() >= {*_COLUMNS, "date", "duration", "endpoint_type", "model_id"}:
        return None
    long = {*_COLUMNS, *_TEXTS, "queue_times"}
    rest = b",".join(b'"%b":%b' % (key.encode(), bytes(text)) for key, text in parts.items() if key not in long)
    try:
        document = parse_tool_json(b"{" + rest + b"}")
    except InputError:
        return None
    columns = _read_columns(parts, rows)
    if columns is None or document.get("num_prompts", len(columns.start)) != len(columns.start):
        return None
    return document, columns


def _read_columns(parts: dict[str, Any], rows: Rows) -> Columns | None:
    import numpy as np

    written = {key: texts(parts[key]) for key in _TEXTS if key in parts}
    errors = written["errors"]
    if not errors or None in written.values():
        return None
    count, queued = len(errors), "queue_times" in parts
    columns = {
        "start": nanoseconds(parts["start_times"], _MOST_CLOCK_SECONDS),
        "ttft": nanoseconds(parts["ttfts"], MOST_SECONDS),
        "latency": nanoseconds(parts["latencies"], MOST_SECONDS),
        "queue": nanoseconds(parts["queue_times"], MOST_SECONDS) if queued else np.zeros(count, np.int64),
        **{name: _tokens_in(parts[key]) for name, key in zip(_TOKENS, ("input_lens", "output_lens"), strict=True)},
    }
    sound = {name: column for name, column in columns.items() if column is not None and len(column) == count}
    if len(sound) < len(columns) or len(rows.counts) != count:
        return None
    failed = np.array([bool(error) for error in errors]) | (sound["latency"] == 0)
    return Columns(**sound, gap_counts=rows.counts, gaps=rows.column, failed=failed, queued=queued)


def _tokens_in(text: Any) -> NDArray[Any] | None:
    found = integers(text)
    if found is None or not len(found) or int(found.min()) < 0 or int(found.max()) > _MOST_TOKENS:
        return None
    return found


def _require_raw(document: Any) -> None:
    if type(document) is not dict:
        raise InputError(Issue("$", "wrong_type", "not a vllm bench result", "a JSON object", type(document).__name__))
    missing = [key for key in (*_COLUMNS, "date", "duration", "endpoint_type", "model_id") if key not in document]
    if missing:
        message = "the file lacks the raw data of each request"
        got = "no " + ", ".join(missing)
        raise InputError(Issue("$", "raw_data_missing", message, ", ".join(_COLUMNS), got, _RAW))
    lists = [key for key in (*_COLUMNS, "queue_times") if key in document]
    wrong = [key for key in lists if type(document[key]) is not list]
    if wrong:
        raise InputError(*(Issue(child("$", key), "wrong_type", "not a list", "one item a request") for key in wrong))
    count = len(document["input_lens"])
    promised = document.get("num_prompts", count)
    if count == 0 or promised != count:
        got = escape(str(promised), 40)
        raise InputError(Issue("$.num_prompts", "length_mismatch", "not the number of requests", str(count or 1), got))
    for key in lists:
        if len(document[key]) != count:
            got = str(len(document[key]))
            raise InputError(Issue(child("$", key), "length_mismatch", "lists of unequal length", str(count), got))


def _strict_columns(document: dict[str, Any]) -> Columns:
    import numpy as np

    issues: list[Issue] = []
    columns: dict[str, Any] = {
        "start": _column(document, "start_times", _clock_ns, issues),
        "ttft": _column(document, "ttfts", _ns, issues),
        "latency": _column(document, "latencies", _ns, issues),
        "gaps": _column(document, "itls", _gaps, issues),
        "input_tokens": _column(document, "input_lens", _tokens, issues),
        "output_tokens": _column(document, "output_lens", _tokens, issues),
        "error": _column(document, "errors", lambda value: value if type(value) is str else "text", issues, text=True),
        "queue": _column(document, "queue_times", _ns, issues) if "queue_times" in document else None,
    }
    if issues:
        raise InputError(*issues[:_MOST_ISSUES])
    count, gaps = len(document["input_lens"]), columns["gaps"]
    numbers = {name: np.array(columns[name], np.int64) for name in ("start", "ttft", "latency", *_TOKENS)}
    return Columns(
        **numbers,
        queue=np.array(columns["queue"] or [0] * count, np.int64),
        gap_counts=np.array([len(row) for row in gaps], np.int64),
        gaps=narrow(gap for row in gaps for gap in row),
        failed=np.array([bool(error) for error in columns["error"]]) | (numbers["latency"] == 0),
        queued="queue_times" in document,
    )


def _column(
    document: dict[str, Any], key: str, read: Callable[[Any], Any], issues: list[Issue], *, text: bool = False
) -> list[Any]:
    """Return each item of a list as ``read`` gives it; a str from ``read`` says what was expected instead."""
    made = []
    for index, value in enumerate(document[key]):
        got = read(value)
        if type(got) is str and not (text and type(value) is str):
            issues.append(Issue(f"$.{key}[{index}]", "invalid_value", "value refused", got, shown(value)))
        made.append(got)
    return made


def _ns(value: Any, most: int = MOST_SECONDS) -> int | str:
    if type(value) not in (int, Decimal) or not 0 <= value <= most:
        return f"seconds from 0 to {most}"
    return exact_ns(value)


def _clock_ns(value: Any) -> int | str:
    return _ns(value, _MOST_CLOCK_SECONDS)


def _gaps(value: Any) -> tuple[int, ...] | str:
    wanted = f"a list of seconds from 0 to {MOST_SECONDS}"
    if type(value) is not list:
        return wanted
    made = tuple(_ns(item) for item in value)
    return wanted if any(type(item) is str for item in made) else made  # type: ignore[return-value]


def _tokens(value: Any) -> int | str:
    fits = type(value) is int and 0 <= value <= _MOST_TOKENS
    return int(value) if fits else f"an integer from 0 to {_MOST_TOKENS}"
