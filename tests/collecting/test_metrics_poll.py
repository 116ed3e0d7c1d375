"""Phases as the engine tells them, and a beat that no source holds up."""

from __future__ import annotations

import asyncio
import sys
import time

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


def test_beats_follow_one_another_at_the_interval() -> None:
    beats: list[int] = []
    begun = time.monotonic()

    def take(at: int, answers: list[Answer]) -> None:
        beats.append(at)
        assert [answer.data for answer in answers] == [b"x"]
        assert answers[0].time_ns >= at

    asyncio.run(poll([Slow(0)], Poll(20 * MS, 10**9, lambda: len(beats) == 4), take))
    assert len(beats) == 4
    assert 0.055 < time.monotonic() - begun < 1
    assert beats == sorted(beats)
    assert abs(beats[0] - time.time_ns()) < 2 * 10**9


def test_the_run_ends_at_its_deadline() -> None:
    beats: list[int] = []
    asyncio.run(poll([Slow(0)], Poll(10 * MS, 50 * MS, lambda: False), lambda at, _: beats.append(at)))
    assert 2 <= len(beats) <= 7


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
