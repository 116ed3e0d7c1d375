"""Signatures being looked for: a set matcher finds which texts a piece holds, and lines with one are confirmed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from moeplan.diagnosis.confirm import BoundedPattern, GivenUpError, LinearPatterns, PatternChild, check_pattern
from moeplan.diagnosis.linear_pattern import Untranslatable
from moeplan.diagnosis.lines import readings
from moeplan.diagnosis.required_text import Anchor, anchors
from moeplan.errors import escape
from moeplan.model.plugin import LogSignature, PluginFailure

__all__ = ["Hit", "Watch", "WatchList", "watch_list"]

_HOOK = "moeplan_log_signatures"
_PART_BYTES = 1 << 13
"""Where a piece holds a text, it is looked for in parts of this size: elsewhere no line is touched."""


@attrs.frozen
class Hit:
    """A line of a piece that bears a signature: where it begins there, and what it says."""

    start: int
    text: bytes


@attrs.define(eq=False)
class Watch:
    """One signature being looked for, and the plugins that know it; ``failure`` once it is looked for no longer.

    Its pattern, where it has one, is the one of a number among those RE2 searches, or a bounded one.
    """

    signature: LogSignature
    plugins: tuple[str, ...]
    versions: tuple[str | None, ...]
    literals: tuple[bytes, ...]
    number: int | None = None
    bounded: BoundedPattern | None = None
    failure: GivenUpError | None = None

    def failures(self) -> Iterator[PluginFailure]:
        """Yield the failure under each plugin's name."""
        if self.failure is not None:
            told = escape(f"signature {self.signature.id}: {self.failure}", 1000)
            for plugin, version in zip(self.plugins, self.versions, strict=True):
                yield PluginFailure(plugin, version, _HOOK, self.failure.code, told)

    def may_be_in(self, text: bytes, patterns: Sequence[int]) -> bool:
        """Return whether a text bears the signature, as far as texts and RE2's patterns tell."""
        if self.number is not None and self.number not in patterns:
            return False
        return all(literal in text for literal in self.literals)

    def confirmed(self, hits: list[Hit]) -> list[Hit]:
        """Return the hits, in the order of their lines and one a line, that a bounded pattern leaves."""
        if self.bounded is not None:
            try:
                hits = [hits[index] for index in self.bounded.found([hit.text for hit in hits])]
            except GivenUpError as failure:
                self.failure = failure
                return []
        return list({hit.start: hit for hit in reversed(hits)}.values())[::-1]


@attrs.define
class _Candidates:
    """Lines of a piece to look at: where each ends, and the signatures it may bear."""

    lines: dict[int, tuple[int, set[int]]] = attrs.field(factory=dict)

    def add(self, piece: bytes, needle: bytes, offset: int, wanted: Sequence[int]) -> None:
        """Add each line that holds the needle; the empty needle is in every line."""
        at = piece.find(needle)
        while 0 <= at < len(piece):
            end = piece.find(b"\n", at)
            start = piece.rfind(b"\n", 0, at) + 1 + offset
            known = self.lines.get(start)
            if known is None:
                self.lines[start] = (end + offset, set(wanted))
            else:
                known[1].update(wanted)
            at = piece.find(needle, end + 1)


@attrs.define
class WatchList:
    """All signatures being looked for."""

    watches: tuple[Watch, ...]
    _needles: tuple[tuple[Anchor, bytes, tuple[int, ...]], ...]
    _anywhere: tuple[int, ...]
    _set: Any
    _patterns: LinearPatterns
    _child: PatternChild
    _found_last: bool = False

    def scan(self, piece: bytes) -> dict[int, list[Hit]]:
        """Return the hits in a piece of whole lines by the signature's place in ``watches``."""
        candidates = _Candidates()
        # Where there was one there are more, as a rule: then the piece is not first searched as a whole.
        if self._set is not None and (self._found_last or self._set.Match(piece)):
            self._find(piece, candidates)
            self._found_last = bool(candidates.lines)
        if self._anywhere:
            candidates.add(piece, b"", 0, self._anywhere)
        return self._confirmed(piece, candidates) if candidates.lines else {}

    def close(self) -> None:
        """End the child process, where one was needed."""
        self._child.close()

    def _find(self, piece: bytes, candidates: _Candidates) -> None:
        start = 0
        while start < len(piece):
            end = piece.rfind(b"\n", start, start + _PART_BYTES) + 1 or piece.find(b"\n", start) + 1
            part = piece[start:end]
            for number in self._set.Match(part) or ():
                anchor, needle, wanted = self._needles[number]
                candidates.add(part.lower() if anchor.folded else part, needle, start, wanted)
            start = end

    def _confirmed(self, piece: bytes, candidates: _Candidates) -> dict[int, list[Hit]]:
        found: dict[int, list[Hit]] = {}
        watches = self.watches
        for start in sorted(candidates.lines):
            end, wanted = candidates.lines[start]
            for text in readings(piece[start:end]):
                searched = any(watches[index].number is not None for index in wanted)
                patterns = self._patterns.found(text) if searched else ()
                for index in wanted:
                    if watches[index].may_be_in(text, patterns):
                        found.setdefault(index, []).append(Hit(start, text))
        kept = {
            index: self.watches[index].confirmed(found[index])
            for index in sorted(found)
            if self.watches[index].failure is None
        }
        return {index: hits for index, hits in kept.items() if hits}


def watch_list(signatures: Mapping[str, Sequence[LogSignature]], versions: Mapping[str, str]) -> WatchList:
    """Return the signatures ready to be looked for; one that several plugins share is looked for once.

    Args:
        signatures: those of each plugin by its name.
        versions: the plugins' versions, where known.
    """
    owners: dict[LogSignature, list[str]] = {}
    for plugin in sorted(signatures):
        for signature in signatures[plugin]:
            if plugin not in owners.setdefault(signature, []):
                owners[signature].append(plugin)
    patterns, child = LinearPatterns(), PatternChild()
    watches = []
    for signature, names in owners.items():
        literals = tuple(text.encode("utf-8", "replace") for text in signature.literals)
        watch = Watch(signature, tuple(names), tuple(versions.get(name) for name in names), literals)
        _prepare(watch, patterns, child)
        watches.append(watch)
    patterns.prepare()
    wanted, anywhere = _anchored(watches)
    needles = tuple((anchor, anchor.text.encode(), tuple(indices)) for anchor, indices in wanted.items())
    return WatchList(tuple(watches), needles, anywhere, _set_matcher(tuple(wanted)), patterns, child)


def _prepare(watch: Watch, patterns: LinearPatterns, child: PatternChild) -> None:
    pattern = watch.signature.pattern
    try:
        if pattern is None:
            if not watch.literals:
                raise GivenUpError("invalid_pattern", "it has neither a literal text nor a pattern")
            return
        check_pattern(pattern)
        try:
            watch.number = patterns.add(pattern)
        except Untranslatable:
            watch.bounded = BoundedPattern(pattern, child)
    except GivenUpError as failure:
        watch.failure = failure


def _anchored(watches: Sequence[Watch]) -> tuple[dict[Anchor, list[int]], tuple[int, ...]]:
    """Return the signatures by the texts to look for, and those of which every line has to be looked at."""
    wanted: dict[Anchor, list[int]] = {}
    anywhere: list[int] = []
    for index, watch in enumerate(watches):
        if watch.failure is None:
            found = anchors(watch.signature)
            for anchor in found:
                wanted.setdefault(anchor, []).append(index)
            if not found:
                anywhere.append(index)
    return wanted, tuple(anywhere)


def _set_matcher(wanted: Sequence[Anchor]) -> Any:
    """Return RE2's matcher for a set of texts, by their place; texts alone keep its automaton small."""
    if not wanted:
        return None
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes as they are: logs need not be UTF-8
    options.max_mem = 64 << 20
    made = re2.Set.SearchSet(options)
    for anchor in wanted:
        text = re2.escape(anchor.text.encode())
        made.Add(b"(?i:" + text + b")" if anchor.folded else text)
    made.Compile()
    return made
