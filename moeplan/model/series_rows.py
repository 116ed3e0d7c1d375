"""Rows of a series as they are seen, in any order; the table has them in order of time."""

from __future__ import annotations

from array import array

import attrs

from moeplan.model.series import SeriesTable

__all__ = ["SeriesRow", "SeriesRows", "series_table"]


@attrs.frozen
class SeriesRow:
    """One row; see :class:`moeplan.model.series.SeriesTable`."""

    time_ns: int
    source: str
    subject: str
    metric: str
    value: int
    unit: str
    text: str = ""
    state: str = "measured"


@attrs.define
class SeriesRows:
    """Collects rows of one source; rows of equal time keep the order in which they were added."""

    source: str
    rows: list[SeriesRow] = attrs.field(factory=list)

    def add(self, time_ns: int, subject: str, metric: str, value: int, unit: str) -> None:
        """Add a measured integer."""
        self.rows.append(SeriesRow(time_ns, self.source, subject, metric, value, unit))

    def word(self, time_ns: int, subject: str, metric: str, text: str) -> None:
        """Add a word: never a path, a name of a host or a person, a prompt or an answer."""
        self.rows.append(SeriesRow(time_ns, self.source, subject, metric, 0, "word", text))

    def reset(self, time_ns: int, subject: str, metric: str, value: int, unit: str) -> None:
        """Add the value of a counter that stands lower than before."""
        self.rows.append(SeriesRow(time_ns, self.source, subject, metric, value, unit, "", "reset"))

    def unread(self, time_ns: int, subject: str, metric: str, unit: str, state: str) -> None:
        """Add that there is no value: ``failed``, or ``not_exposed``."""
        self.rows.append(SeriesRow(time_ns, self.source, subject, metric, 0, unit, "", state))

    def table(self) -> SeriesTable:
        """Return the rows as a table."""
        return series_table(self.rows)


def series_table(rows: list[SeriesRow]) -> SeriesTable:
    """Return rows, of several sources too, as a table in order of time."""
    ordered = sorted(rows, key=lambda row: row.time_ns)
    return SeriesTable(
        array("q", (row.time_ns for row in ordered)),
        tuple(row.source for row in ordered),
        tuple(row.subject for row in ordered),
        tuple(row.metric for row in ordered),
        array("q", (row.value for row in ordered)),
        tuple(row.unit for row in ordered),
        tuple(row.text for row in ordered),
        tuple(row.state for row in ordered),
    )
