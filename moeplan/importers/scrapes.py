"""Pages of metrics as they are kept: one a file, JSON Lines of several, or one text whose samples have timestamps."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Sequence

import attrs

from moeplan.errors import InputError, Issue, escape
from moeplan.importers.given import GivenFile
from moeplan.units import NS_PER_MS
from moeplan.wire.prometheus_text import MAX_METRICS_BYTES

__all__ = ["Scrape", "read_scrapes"]

_GZIP = b"\x1f\x8b"
_MOST_BYTES = 1 << 30
_TIMES = ("scrape_ts_ms", "timestamp_ms", "ts_ms")


@attrs.frozen
class Scrape:
    """One page, when it was read (nanoseconds since 1970), and where it stands, for messages."""

    where: str
    time_ns: int
    page: bytes


def read_scrapes(files: Sequence[GivenFile], taken: Sequence[int] = ()) -> list[Scrape]:
    """Return the pages of all files in order of time.

    Args:
        files: each is a page, JSON Lines of ``{"scrape_ts_ms": …, "text": …}``, or samples with timestamps in ms.
        taken: instants of pages that have no timestamps, one for each such file in order, nanoseconds since 1970.

    Raises:
        InputError: a form that is not known, a page whose instant nothing tells, or two pages of one instant.
    """
    left = list(taken)
    found: list[Scrape] = []
    for file in files:
        data = _plain(file)
        if data.lstrip()[:1] == b"{":
            found += _of_lines(file.name, data)
        else:
            found += _of_text(file.name, data, left)
    found.sort(key=lambda scrape: scrape.time_ns)
    if left:
        raise InputError(Issue("--taken", "usage", "more instants than pages without one", None, str(len(left))))
    if len({scrape.time_ns for scrape in found}) < len(found):
        raise InputError(Issue("FILE", "instant_twice", "two pages of one instant", "each page once"))
    if not found:
        raise InputError(Issue("FILE", "nothing_to_import", "no page of metrics", "at least one"))
    return found


def _plain(file: GivenFile) -> bytes:
    data = file.data
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            plain = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise InputError(Issue(escape(file.name, 200), "not_gzip", "damaged gzip", "a whole file")) from None
    if len(plain) > _MOST_BYTES:
        raise InputError(Issue(escape(file.name, 200), "too_large", "too large when unpacked", f"{_MOST_BYTES} bytes"))
    return plain


def _of_lines(name: str, data: bytes) -> list[Scrape]:
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        where = f"{escape(name, 200)}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        text = row.get("text") if type(row) is dict else None
        times = [row[key] for key in _TIMES if type(row.get(key)) is int] if type(row) is dict else []
        if type(text) is not str or not times or not 0 <= times[0] < 2**43:
            expected = '{"scrape_ts_ms": milliseconds since 1970, "text": the page}'
            raise InputError(Issue(where, "not_a_scrape", "no page with its instant", expected))
        found.append(Scrape(where, times[0] * NS_PER_MS, text.encode("utf-8", "surrogatepass")))
    return found


def _of_text(name: str, data: bytes, taken: list[int]) -> list[Scrape]:
    """Return the pages of one text: told apart by their samples' timestamps, or by lines of dashes."""
    stamped: dict[int, list[bytes]] = {}
    pages: list[list[bytes]] = [[]]
    for line in data.splitlines():
        if line.startswith(b"---") and pages[-1]:
            pages.append([])
        if not line.strip() or line.startswith((b"#", b"-")):
            continue
        at = _timestamp(line)
        if at is not None:
            stamped.setdefault(at, []).append(line.rpartition(b" ")[0])
        elif pages[-1] or _is_sample(line):  # words above a page are no sample
            pages[-1].append(line)
    plain = [page for page in pages if page]
    where = escape(name, 200)
    if plain and stamped:
        raise InputError(Issue(where, "mixed_timestamps", "samples with and without timestamps", "one of both"))
    if stamped:
        return [Scrape(where, ms * NS_PER_MS, b"\n".join(lines) + b"\n") for ms, lines in sorted(stamped.items())]
    if not plain or len(data) > MAX_METRICS_BYTES:
        raise InputError(Issue(where, "not_metrics", "no page of metrics", "the text that /metrics answers"))
    if len(taken) < len(plain):
        step = "say when: --taken 2026-11-30T16:30:00Z, once for each page in order"
        got = f"{len(plain)} page(s), {len(taken)} instant(s) left for them"
        raise InputError(Issue("--taken", "usage", f"nothing tells when {where} was read", "an instant", got, step))
    return [Scrape(where, taken.pop(0), b"\n".join(lines) + b"\n") for lines in plain]


def _timestamp(line: bytes) -> int | None:
    """Return a sample's own timestamp, milliseconds since 1970."""
    rest = line.rpartition(b"}")[2].split() if b"}" in line else line.split()[1:]
    return int(rest[1]) if len(rest) == 2 and rest[1].isdigit() and len(rest[1]) == 13 else None


def _is_sample(line: bytes) -> bool:
    return b"{" in line or (len(line.split()) == 2 and b"_" in line)
