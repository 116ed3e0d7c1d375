"""Counting lines that bear signatures: for one id in one log, or for what is expected of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from moeplan.diagnosis.excerpts import excerpt
from moeplan.diagnosis.required_text import anchors
from moeplan.diagnosis.result import ExpectedLine, LogEvidence, LogFinding, ReadLog
from moeplan.diagnosis.watch import Hit, Watch

__all__ = ["SEVERITIES", "FirstLine", "Tally", "expected_tallies", "finding_tallies"]

SEVERITIES = ("error", "warning", "info")


@attrs.frozen
class FirstLine:
    """The first line counted: the log, its number there, what is shown of it, and the signature it bears."""

    file: str
    number: int
    excerpt: str
    watch: Watch


@attrs.define
class Tally:
    """Lines that bear at least one of the signatures at ``members``, places in a watch list."""

    members: tuple[int, ...]
    count: int = 0
    first: FirstLine | None = None
    found: set[int] = attrs.field(factory=set)

    def add(
        self, hits: Mapping[int, Sequence[Hit]], watches: Sequence[Watch], file: str, lines_before: int, piece: bytes
    ) -> None:
        """Count the hits, some of a member, in a piece that begins after ``lines_before`` lines of ``file``."""
        mine = [index for index in self.members if index in hits]
        self.found.update(mine)
        if len(mine) == 1:
            self.count += len(hits[mine[0]])
        else:
            self.count += len({hit.start for index in mine for hit in hits[index]})
        if self.first is None:
            hit, index = min(((hits[index][0], index) for index in mine), key=lambda pair: (pair[0].start, pair[1]))
            number = lines_before + piece.count(b"\n", 0, hit.start) + 1
            signature = watches[index].signature
            texts = [*signature.literals, *(anchor.text for anchor in anchors(signature))]
            self.first = FirstLine(file, number, excerpt(hit.text, texts), watches[index])

    def finding(self, watches: Sequence[Watch], log: ReadLog) -> LogFinding | None:
        """Return the finding, or None where nothing was counted."""
        if self.first is None:
            return None
        found = [watches[index] for index in sorted(self.found)]
        signature = self.first.watch.signature
        forbidden = any(watch.signature.expectation == "must_be_zero" for watch in found)
        return LogFinding(
            id=signature.id,
            plugin=self.first.watch.plugins[0],
            plugins=tuple(sorted({name for watch in found for name in watch.plugins})),
            severity=_gravest(found),
            expectation="must_be_zero" if forbidden else "informs",
            file=log.file,
            count=self.count,
            first_line=self.first.number,
            excerpt=self.first.excerpt,
            cause=signature.cause,
            remedy=signature.remedy,
            sources=signature.sources,
            valid_for=signature.valid_for,
            evidence=LogEvidence(
                "log_line_count", self.count, log.digest, "eq" if forbidden else None, 0 if forbidden else None
            ),
            complete=all(watches[index].failure is None for index in self.members),
        )

    def expected(self, watches: Sequence[Watch]) -> ExpectedLine:
        """Return what became of the expectation that the members share."""
        members = [watches[index] for index in self.members]
        shown = members[0] if self.first is None else self.first.watch
        wanted = self.count == 0 if shown.signature.expectation == "must_be_zero" else self.count > 0
        given_up = self.count == 0 and any(watch.failure is not None for watch in members)
        return ExpectedLine(
            id=shown.signature.id,
            plugin=shown.plugins[0],
            expectation=shown.signature.expectation,
            severity=_gravest(members),
            count=self.count,
            holds=None if given_up else wanted,
            file=None if self.first is None else self.first.file,
            first_line=None if self.first is None else self.first.number,
            excerpt=None if self.first is None else self.first.excerpt,
            cause=shown.signature.cause,
            remedy=shown.signature.remedy,
            sources=shown.signature.sources,
        )


def _gravest(watches: Sequence[Watch]) -> str:
    return min((watch.signature.severity for watch in watches), key=SEVERITIES.index)


def finding_tallies(watches: Sequence[Watch]) -> list[Tally]:
    """Return a tally for each id; a line that must be there is as it must be, and no finding."""
    found: dict[str, list[int]] = {}
    for index, watch in enumerate(watches):
        if watch.signature.expectation != "must_be_present":
            found.setdefault(watch.signature.id, []).append(index)
    return [Tally(tuple(members)) for members in found.values()]


def expected_tallies(watches: Sequence[Watch]) -> list[Tally]:
    """Return a tally for each id and expectation, in the order of the ids."""
    found: dict[tuple[str, str], list[int]] = {}
    for index, watch in enumerate(watches):
        if watch.signature.expectation != "informs":
            found.setdefault((watch.signature.id, watch.signature.expectation), []).append(index)
    return [Tally(tuple(found[key])) for key in sorted(found)]
