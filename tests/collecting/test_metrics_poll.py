"""Phases as the engine tells them, and a beat that no source holds up."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Mapping
from itertools import pairwise

import pytest

from moeplan.collectors.metrics_phases import PhaseMarks, phase_of
from moeplan.collectors.metrics_poll import Answer, CommandSource, Poll, poll
from moeplan.model.observations import MemoryPhase

MS = 10**6


@pytest.mark.parametrize(
    ("in_flight", "running", "phase"),
    [
        ([None], None, "idle"),
        ([None, None], False, "idle"),
        ([None], True, None),
        ([0], True, "warm"),
        ([0, 0], None, "warm"),
        ([0, 3], True, "loaded"),
        ([0, None], True, None),
        ([5, None], True, None),
        ([], False, "idle"),
    ],
)
def test_a_phase_is_what_endpoints_and_processes_show(
    in_flight: list[int | None], running: bool | None, phase: str | None
) -> None:
    assert phase_of(in_flight, running) == phase


def test_a_phase_lasts_up_to_the_first_moment_of_another() -> None:
    marks = PhaseMarks()
    for at, phase in ((100, "idle"), (110, "idle"), (120, None), (130, "warm"), (140, "loaded"), (150, "loaded")):
        marks.mark(at, phase)
    assert marks.phases(90) == (
        MemoryPhase("idle", 10, 30),
        MemoryPhase("warm", 40, 50),
        MemoryPhase("loaded", 50, 60),
    )
    assert marks.seen == {"idle", "warm", "loaded"}
    marks.mark(160, "warm")
    assert marks.phases(90)[-1] == MemoryPhase("loaded", 50, 70)  # the last moment of warm has no length


class Slow:
    """A source that answers after a while."""

    def __init__(self, seconds: float, data: bytes = b"x") -> None:
        self.seconds, self.data = seconds, data

    async def ask(self, deadline_ns: int) -> bytes | None:
        try:
            return await asyncio.wait_for(asyncio.sleep(self.seconds, self.data), deadline_ns / 10**9)
        except TimeoutError:
            return None

    def close(self) -> None:
        pass


class Beats:
    """What a run of beats gave."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.begun: list[int] = []
        self.taken: list[dict[int, Answer]] = []

    def plan(self, interval_ms: int, most_ns: int = 10**10) -> Poll:
        def take(at: int, answers: Mapping[int, Answer]) -> None:
            assert at == self.begun[-1]
            self.taken.append(dict(answers))

        return Poll(interval_ms * MS, most_ns, self.begun.append, take, lambda: len(self.taken) >= self.last)

    def gaps(self) -> list[int]:
        return [(right - left) // MS for left, right in pairwise(self.begun)]


def test_beats_follow_one_another_at_the_interval() -> None:
    beats = Beats(4)
    asyncio.run(poll([Slow(0)], beats.plan(30)))
    assert [list(answers) for answers in beats.taken] == [[0]] * 4
    assert all(30 <= gap < 400 for gap in beats.gaps())
    assert all(answers[0].time_ns >= at for at, answers in zip(beats.begun, beats.taken, strict=True))
    assert abs(beats.begun[0] - time.time_ns()) < 5 * 10**9


def test_a_slow_source_holds_up_nobody_and_its_answer_has_the_time_of_its_question() -> None:
    beats = Beats(5)
    asyncio.run(poll([Slow(0), Slow(0.25, b"late")], beats.plan(100)))
    assert all(0 in answers for answers in beats.taken)
    late = [(number, answers[1]) for number, answers in enumerate(beats.taken) if 1 in answers]
    assert late[0][0] == 2
    assert late[0][1].data == b"late"
    assert beats.begun[0] <= late[0][1].time_ns < beats.begun[1]
    assert all(gap < 200 for gap in beats.gaps())


def test_the_run_ends_at_its_deadline() -> None:
    beats = Beats(1000)
    asyncio.run(poll([Slow(0)], beats.plan(10, 50 * MS)))
    assert 2 <= len(beats.taken) <= 7


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("print('yes', end='')", b"yes"),
        ("raise SystemExit(3)", None),
        ("import time; time.sleep(60)", None),
    ],
)
def test_a_command_answers_in_time_or_not_at_all(code: str, told: bytes | None) -> None:
    begun = time.monotonic()
    source = CommandSource([sys.executable, "-I", "-c", code])
    assert asyncio.run(source.ask(700 * MS if "sleep" in code else 20_000 * MS)) == told
    assert time.monotonic() - begun < 15


def test_a_command_that_is_not_there_answers_nothing() -> None:
    assert asyncio.run(CommandSource(["/does/not/exist"]).ask(10**9)) is None
