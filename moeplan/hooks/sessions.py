"""A session: a process in which one plugin is loaded once and asked any number of things, each within a deadline."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import suppress

from moeplan.hooks.discovery import PluginEntry
from moeplan.hooks.faults import Fault
from moeplan.hooks.frames import HEADER_BYTES, frame, length_of
from moeplan.hooks.launching import BOOT

__all__ = ["Session", "launch"]


class Session:
    """The host's ends of the pipes to a plugin's process; closing them ends it with all it started."""

    def __init__(self, questions: int, answers: int, told: int) -> None:
        self._questions, self._answers, self._told = questions, answers, told
        self._number = 0
        self.open = True

    def ask(self, question: bytes, deadline_ms: int) -> bytes:
        """Return the answer to a question; after a fault the session is closed.

        Args:
            question: JSON as :mod:`moeplan.hooks.serving` takes it.
            deadline_ms: time from now to the whole answer.

        Raises:
            Fault: the process ended, was too slow, said too much, or wrote something else to the host.
        """
        self._number += 1
        try:
            return self._exchange(frame(self._number, question), time.monotonic_ns() + deadline_ms * 1_000_000)
        except TimeoutError:
            self.close()
            raise Fault("timed_out", f"no answer within {deadline_ms} ms; its process was ended") from None
        except BaseException:
            self.close()
            raise

    def _exchange(self, asked: bytes, ends: int) -> bytes:
        """Write the question as it is taken and read the answer as it comes, both in one loop: neither can block."""
        unsent = memoryview(asked)
        got = bytearray()
        wanted = HEADER_BYTES
        ended: str | None = None
        with selectors.DefaultSelector() as ready:
            ready.register(self._questions, selectors.EVENT_WRITE)
            ready.register(self._answers, selectors.EVENT_READ)
            ready.register(self._told, selectors.EVENT_READ)
            while True:
                for key in _selected(ready, ends):
                    if key.fd == self._questions:
                        unsent = unsent[_write(key.fd, unsent) :]
                        if not unsent:
                            ready.unregister(key.fd)
                    elif key.fd == self._told:
                        ended = os.read(key.fd, 32).decode("ascii")
                        ready.unregister(key.fd)
                    elif part := os.read(key.fd, wanted - len(got)):
                        got += part
                    else:
                        ready.unregister(key.fd)
                if wanted == HEADER_BYTES and len(got) == HEADER_BYTES:
                    wanted += length_of(bytes(got), self._number)
                if len(got) == wanted > HEADER_BYTES:
                    return bytes(got[HEADER_BYTES:])
                if ended is not None and self._answers not in ready.get_map():
                    raise _died(ended)

    def close(self) -> None:
        """Close the pipes; the process ends soon, and all it started with it."""
        if self.open:
            self.open = False
            for fd in (self._questions, self._answers, self._told):
                os.close(fd)


def _selected(ready: selectors.BaseSelector, ends: int) -> list[selectors.SelectorKey]:
    left = ends - time.monotonic_ns()
    keys = [key for key, _events in ready.select(left / 1e9)] if left > 0 else []
    if not keys:
        raise TimeoutError
    return keys


def _write(fd: int, data: memoryview) -> int:
    """Return how much of the question was taken; of a process that reads no more, all."""
    try:
        return os.write(fd, data)
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(data)


def _died(ended: str) -> Fault:
    """Return the fault of a process that ended; ``ended`` is empty where its watcher did not live to say how."""
    if not ended:
        return Fault("died", "its process, or the one that watches it, was ended before it had answered")
    told = f"signal {ended[1:]}" if ended.startswith("-") else f"exit status {ended}"
    return Fault("died", f"its process ended with {told} before it had answered")


def launch(
    entries: Sequence[PluginEntry], expects: Collection[str], preload: Collection[str]
) -> tuple[subprocess.Popen[bytes], list[Session]]:
    """Start a launcher and through it a session for each plugin; none of them is waited for.

    Args:
        entries: the plugins.
        expects: hooks for whose calls the launcher prepares.
        preload: modules that the launcher imports.

    Returns:
        The launcher, which ends when its sessions are closed, and the sessions in the order of the entries.

    Raises:
        Fault: the system has no more processes or open files to give.
    """
    sessions: list[Session] = []
    plugins = []
    theirs: list[int] = []
    try:
        for entry in entries:
            session, pipes = _pipes()
            sessions.append(session)
            theirs += pipes
            plugins.append({"name": entry.name, "value": entry.value, "pipes": pipes})
        told = json.dumps([sys.path, plugins, list(expects), list(preload)])
        launcher = subprocess.Popen(
            [sys.executable, "-P", "-c", BOOT, told],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=theirs,
        )
    except OSError as error:
        for session in sessions:
            session.close()
        raise Fault("died", f"its process could not be started: {error.strerror}") from None
    finally:
        for fd in theirs:
            with suppress(OSError):
                os.close(fd)
    return launcher, sessions


def _pipes() -> tuple[Session, list[int]]:
    """Return a session and the other ends of its pipes: to read questions, to write answers, to say how it ended."""
    their_questions, questions = os.pipe()
    answers, their_answers = os.pipe()
    told, their_told = os.pipe()
    os.set_blocking(questions, False)
    return Session(questions, answers, told), [their_questions, their_answers, their_told]
