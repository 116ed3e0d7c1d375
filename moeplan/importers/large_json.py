"""One large JSON object with long columns of numbers: read column by column, as exactly as ``tool_json`` reads it.

Everything here answers None where the text is anything but plainly sound; the strict reader then says what is wrong.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.errors import InputError
from moeplan.importers.tool_json import parse_tool_json
from moeplan.model.columns import NARROW, WIDE, append, column_of, view
from moeplan.units import NS_PER_S

if TYPE_CHECKING:
    from msgspec import Raw
    from numpy.typing import NDArray

__all__ = ["Rows", "exact_ns", "integers", "members", "nanosecond_rows", "nanoseconds", "texts"]

_SPACE = b" \t\r\n"
_BLOCK_BYTES = 1 << 20
_EXACT = Context(prec=2000)
_ROUNDING = 2e-7
"""Ns by which the product of a fraction below 1 with 10^9 can be off in binary64: half a unit in the last place."""
_NARROW_MOST = (1 << 31) - 1


def members(data: bytes) -> dict[str, Raw] | None:
    """Return the text of each member of the object in ``data``, by key; None where it is none or a key stands twice."""
    import msgspec

    try:
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return found if _is_all(data, found) else None


def _is_all(data: bytes, found: dict[str, Raw]) -> bool:
    """Return whether the members in their order are the whole text, so that none was passed over for a later one."""
    at = _after(data, 0, b"{")
    for number, (key, text) in enumerate(found.items()):
        if number:
            at = _after(data, at, b",")
        at = _after(data, at, b'"' + key.encode() + b'"')
        at = _after(data, at, b":")
        at = _after(data, at, text)
    at = _after(data, at, b"}")
    return at == len(data)


def _after(data: bytes, at: int, text: Any) -> int:
    """Return where what follows ``text`` and white space begins; past the end where ``text`` does not stand there."""
    if not data.startswith(text, at):
        return len(data) + 1
    at += len(memoryview(text))
    while at < len(data) and data[at] in _SPACE:
        at += 1
    return at


def integers(text: Raw) -> NDArray[Any] | None:
    """Return a list of integers as a column; None where it is something else or a value is beyond 64 bits."""
    import numpy as np

    values = _decoded(text, list[int])
    try:
        return None if values is None else np.array(values, np.int64)
    except OverflowError:
        return None


def texts(text: Raw) -> list[str] | None:
    """Return a list of texts; None where it is something else."""
    found: list[str] | None = _decoded(text, list[str])
    return found


def _decoded(text: Raw | bytes, kind: Any) -> Any:
    import msgspec

    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def exact_ns(seconds: int | Decimal) -> int:
    """Return seconds of any magnitude as nanoseconds, rounded half to even from the exact decimal."""
    return int(_EXACT.multiply(Decimal(seconds), NS_PER_S).to_integral_value(ROUND_HALF_EVEN))


def nanoseconds(text: Raw, most: int) -> NDArray[Any] | None:
    """Return a list of seconds from 0 to ``most`` in ns, each rounded half to even from its decimal."""
    values = _decoded(text, list[float])
    return None if values is None else _to_ns(array("d", values), most, partial(_numbers_at, text))


def _numbers_at(text: Raw, places: list[int]) -> list[Any]:
    import msgspec

    written = _decoded(text, list[msgspec.Raw])
    return [parse_tool_json(bytes(written[place])) for place in places]


@attrs.frozen(eq=False)
class Rows:
    """A list of lists of seconds.

    Attributes:
        counts: how many each inner list holds.
        column: all of them in ns, of 32 bits where all fit.
        rest: the text with 0 in the list's place.
    """

    counts: NDArray[Any]
    column: array[int]
    rest: bytes


def nanosecond_rows(data: bytes, key: str, most: int) -> Rows | None:
    """Return the list of lists of seconds that stands after ``key``; None where that is not there once.

    The key is a member of the object only if :func:`members` gives 0 for it in the rest.
    """
    import numpy as np

    named = b'"%b"' % key.encode()
    start = data.find(named)
    begin = _after(data, _after(data, start, named), b":") if start >= 0 else len(data)
    at, counts, made = _after(data, begin, b"["), array(WIDE), array(NARROW)
    while at < len(data):
        block, rows = _next_rows(data, at)
        if not rows:
            return None
        counts.extend(map(len, rows))
        found = _to_ns(_flattened(rows), most, partial(_numbers_in, block))
        if found is None:
            return None
        if made.typecode == NARROW and len(found) and int(found.max()) > _NARROW_MOST:
            made = column_of(view(made), WIDE)
        append(made, found)
        stop = _after(data, at + len(block) - 2, b"")
        if data.startswith(b"]", stop):
            rest = data[:begin] + b"0" + data[stop + 1 :]
            return Rows(np.array(counts, np.int64), made, rest) if rest.find(named, start + 1) < 0 else None
        at = _after(data, stop, b",")
    return None


def _next_rows(data: bytes, at: int) -> tuple[bytes, list[list[float]] | None]:
    """Return about a megabyte of inner lists, as the text of a list of lists and read; at the end what is left."""
    stop = data.find(b"]", at + _BLOCK_BYTES) + 1
    block = b"[%b]" % data[at : stop or len(data)]
    rows = _decoded(block, list[list[float]])
    if rows is None:
        block = block[: block.find(b"]]") + 2]
        rows = _decoded(block, list[list[float]])
    return block, rows


def _flattened(rows: list[list[float]]) -> array[float]:
    made = array("d")
    for row in rows:
        made.fromlist(row)
    return made


def _numbers_in(block: bytes, places: list[int]) -> list[Any]:
    import msgspec

    written = list(chain.from_iterable(_decoded(block, list[list[msgspec.Raw]])))
    return [parse_tool_json(bytes(written[place])) for place in places]


def _to_ns(values: array[float], most: int, exact: Callable[[list[int]], list[Any]]) -> NDArray[Any] | None:
    """Return seconds as ns; what lies so near to a tie that binary64 does not decide is taken from the exact values.

    A float is within half a unit in its last place of its decimal, its fraction is exact, and the product with 10^9 is
    rounded once. None where a value is out of range, or the strict reader refuses one.
    """
    import numpy as np

    seconds = np.frombuffer(values, np.float64) if len(values) else np.empty(0)
    top = float(seconds.max(initial=0.0))
    if not float(seconds.min(initial=0.0)) >= 0 or not top <= most:
        return None
    whole = np.floor(seconds) if top >= 1 else 0.0
    scaled = (seconds - whole) * NS_PER_S
    nearest = np.rint(scaled)
    made = nearest.astype(np.int64)
    if top >= 1:
        made += np.asarray(whole, np.float64).astype(np.int64) * NS_PER_S
    clear = 0.5 - float(np.spacing(top)) / 2 * NS_PER_S - _ROUNDING
    scaled -= nearest
    if len(made) and (float(scaled.max()) >= clear or float(scaled.min()) <= -clear):
        unclear = np.flatnonzero(np.abs(scaled) >= clear).tolist()
        try:
            made[unclear] = [exact_ns(number) for number in exact(unclear)]
        except InputError:
            return None
    return made
