"""One large JSON object with long columns of numbers: read column by column, as exactly as ``tool_json`` reads it.

Everything here answers None where the text is anything but plainly sound; the strict reader then says what is wrong.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError
from moeplan.importers.tool_json import parse_tool_json
from moeplan.model.columns import NARROW, WIDE, append, column_of, view
from moeplan.units import NS_PER_S

if TYPE_CHECKING:
    from msgspec import Raw
    from numpy.typing import NDArray

__all__ = ["exact_ns", "integers", "members", "nanosecond_rows", "nanoseconds", "texts"]

_SPACE = b" \t\r\n"
_ROWS = 2048
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


def _decoded(text: Raw, kind: Any) -> Any:
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
    return None if values is None else _to_ns(array("d", values), [text], [len(values)], most)


def nanosecond_rows(text: Raw, most: int) -> tuple[NDArray[Any], array[int]] | None:
    """Return a list of lists of seconds: how many each holds, and all in ns, in 32-bit integers where all fit."""
    import msgspec
    import numpy as np

    rows = _decoded(text, list[msgspec.Raw])
    if rows is None:
        return None
    decode = msgspec.json.Decoder(list[float]).decode
    counts, made = array(WIDE), array(NARROW)
    for start in range(0, len(rows), _ROWS):
        block, values, sizes = rows[start : start + _ROWS], array("d"), []
        try:
            for row in block:
                seconds = decode(row)
                values.fromlist(seconds)
                sizes.append(len(seconds))
        except msgspec.MsgspecError:
            return None
        found = _to_ns(values, block, sizes, most)
        if found is None:
            return None
        if made.typecode == NARROW and len(found) and int(found.max()) > _NARROW_MOST:
            made = column_of(view(made), WIDE)
        append(made, found)
        counts.extend(sizes)
    return np.array(counts, np.int64), made


def _to_ns(values: array[float], rows: Sequence[Raw], sizes: Sequence[int], most: int) -> NDArray[Any] | None:
    """Return seconds as ns; what lies so near to a tie that binary64 does not decide is read again from its text.

    A float is within half a unit in its last place of its decimal, its fraction is exact, and the product with 10^9 is
    rounded once.
    """
    import numpy as np

    seconds = np.frombuffer(values, np.float64) if len(values) else np.empty(0)
    if not len(seconds):
        return seconds.astype(np.int64)
    top = float(seconds.max())
    if not float(seconds.min()) >= 0 or not top <= most:
        return None
    whole = np.floor(seconds)
    scaled = (seconds - whole) * NS_PER_S
    nearest = np.rint(scaled)
    made = whole.astype(np.int64) * NS_PER_S + nearest.astype(np.int64)
    clear = 0.5 - float(np.spacing(top)) / 2 * NS_PER_S - _ROUNDING
    unclear = np.flatnonzero(np.abs(scaled - nearest) >= clear)
    return made if _decide(made, unclear, rows, sizes) else None


def _decide(made: NDArray[Any], unclear: NDArray[Any], rows: Sequence[Raw], sizes: Sequence[int]) -> bool:
    """Put the exact values in the places that are unclear; False where the strict reader refuses one's row."""
    import numpy as np

    stops = np.cumsum(sizes)
    owners = np.searchsorted(stops, unclear, "right")
    for row in np.unique(owners).tolist():
        try:
            exact = parse_tool_json(bytes(rows[row]))
        except InputError:
            return False
        for place in unclear[owners == row].tolist():
            made[place] = exact_ns(exact[place - int(stops[row]) + sizes[row]])
    return True
