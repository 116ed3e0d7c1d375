"""How one worker is made to fail, and how it is started again. Nothing here acts before it is told to."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from contextlib import suppress
from pathlib import Path

import attrs

from moeplan.errors import InputError, Issue, escape

__all__ = ["SIGNALS", "CommandFault", "Fault", "Restart", "SignalFault", "command_words", "signal_fault"]

SIGNALS = ("KILL", "TERM", "INT", "HUP", "QUIT", "ABRT", "SEGV", "STOP")
"""Signals that may be sent."""


@attrs.frozen
class SignalFault:
    """A signal to one process, which is held from before the load begins: its number cannot come to mean another."""

    pid: int
    name: str
    handle: int

    @property
    def kind(self) -> str:
        """``kill`` or ``signal``, as the record names it."""
        return "kill" if self.name == "KILL" else "signal"

    @property
    def described(self) -> str:
        """What it does, for people."""
        return f"send SIG{self.name} to process {self.pid} ({escape(_name_of(self.pid), 40)})"

    async def inject(self) -> None:
        """Send the signal.

        Raises:
            InputError: the process is gone, or belongs to somebody else.
        """
        try:
            signal.pidfd_send_signal(self.handle, getattr(signal, f"SIG{self.name}"))
        except OSError as error:
            raise _gone(self.pid, error) from None

    async def exited(self) -> None:
        """Return when the process has ended."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self.handle, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self.handle)

    def close(self) -> None:
        """Let go of the process."""
        with suppress(OSError):
            os.close(self.handle)


@attrs.frozen
class CommandFault:
    """A command that makes a worker fail, such as one that deletes its pod; it is run without a shell."""

    words: tuple[str, ...]
    deadline_s: float = 120.0
    kind: str = attrs.field(default="command", init=False)

    @property
    def described(self) -> str:
        """What it does, for people."""
        return f"run: {escape(shlex.join(self.words), 400)}"

    async def inject(self) -> None:
        """Run the command to its end.

        Raises:
            InputError: it cannot be started, fails, or does not end in time.
        """
        nowhere = asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                *self.words, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise _not_started("--command", error) from None
        try:
            code = await asyncio.wait_for(process.wait(), self.deadline_s)
        except TimeoutError:
            process.kill()
            await process.wait()
            message = f"the command did not end within {self.deadline_s:.0f} s"
            raise InputError(Issue("--command", "command_late", message, "one that returns")) from None
        if code != 0:
            raise InputError(Issue("--command", "command_failed", "the command failed", "exit code 0", str(code)))

    async def exited(self) -> None:
        """Wait for ever: which process ends is not known here."""
        await asyncio.Event().wait()

    def close(self) -> None:
        """Hold nothing."""


Fault = SignalFault | CommandFault


@attrs.frozen
class Restart:
    """The command that starts the worker again, and how long after the fault; it is left running."""

    words: tuple[str, ...]
    after_ns: int

    @property
    def described(self) -> str:
        """What it does, for people."""
        return f"{self.after_ns // 10**9} s later run: {escape(shlex.join(self.words), 400)}"

    def start(self) -> int:
        """Start the command in a session of its own, where it outlives this process, and return its number.

        Raises:
            InputError: it cannot be started.
        """
        nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        try:
            return os.posix_spawnp(self.words[0], self.words, os.environ, file_actions=nowhere, setsid=True)
        except (OSError, ValueError, NotImplementedError) as error:
            raise _not_started("--restart-command", error) from None


def _not_started(option: str, error: Exception) -> InputError:
    shown = escape(getattr(error, "strerror", None) or str(error), 100)
    return InputError(Issue(option, "command_not_started", f"cannot be started: {shown}", "a program"))


def command_words(option: str, text: str) -> tuple[str, ...]:
    """Return the words of a command as a shell splits them; no shell runs it.

    Raises:
        InputError: no word in it, or a quote that is not closed.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        words = ()
    if not words or "\0" in text:
        raise InputError(Issue(option, "invalid_command", "not a command", "a program and its arguments"))
    return words


def signal_fault(pid: int, name: str) -> SignalFault:
    """Take hold of the process that is to be signalled.

    Raises:
        InputError: no such process, one that runs this command, or a system that cannot hold processes.
    """
    if name not in SIGNALS:
        raise InputError(Issue("--signal", "invalid_value", "not a signal", ", ".join(SIGNALS), escape(name, 20)))
    if pid <= 1 or pid in _own_processes():
        raise InputError(
            Issue("--pid", "process_refused", "this process runs the command itself", "a worker's process")
        )
    if not hasattr(os, "pidfd_open"):
        step = "use --command"
        raise InputError(Issue("--pid", "not_on_this_system", "processes cannot be held here", "Linux", None, step))
    try:
        return SignalFault(pid, name, os.pidfd_open(pid))
    except OSError as error:
        raise _gone(pid, error) from None


def _gone(pid: int, error: OSError) -> InputError:
    shown = escape(error.strerror or str(error), 100)
    return InputError(Issue("--pid", "process_gone", f"process {pid}: {shown}", "a process that runs"))


def _own_processes() -> set[int]:
    """Return this process and those that started it."""
    found, pid = set[int](), os.getpid()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return "unknown"
