"""The processes between the host and its plugins: one that forks a watcher for each plugin, and the watchers.

The launcher imports what every plugin's process needs, once, and loads no plugin. For each plugin it forks a watcher,
which forks the plugin's process into a session of its own, waits until that ends or the host has closed its pipe, ends
everything that is left of it, and says how it ended. A plugin that ends its parent ends its own watcher and with it
itself; neither the launcher nor another plugin's watcher is in its group. All of them have one thread.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

__all__ = ["BOOT", "main"]

BOOT = (
    "import gc, json, sys; gc.disable(); sys.path[:], *told = json.loads(sys.argv.pop()); "
    "from moeplan.hooks.launching import main; main(*told)"
)
"""The launcher's program. Its argument is JSON: the host's ``sys.path``, so that both find the same plugins, and the
arguments of :func:`main`."""

_END_NS = 1_000_000_000
"""How long a watcher goes on ending what it finds; a process that the kernel does not let go of is left then."""
_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36
"""Source: linux/prctl.h."""


def main(plugins: list[dict[str, Any]], expects: list[str], preload: list[str]) -> NoReturn:
    """Fork a watcher for each plugin, and end when they have.

    Args:
        plugins: name and value of each one's entry point, and the numbers of its pipes.
        expects: hooks that will be called.
        preload: modules that plugins import for them.
    """
    watchers: set[int] = set()

    def end(*_: object) -> None:
        for pid in watchers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    _warm_up(expects, preload)
    _adopt_orphans()
    for plugin in plugins:
        with suppress(OSError):  # no process to be had: the host reads from the closed pipes that there is none
            pid = os.fork()
            if pid == 0:
                _run(_watch, plugin)
            watchers.add(pid)
        for fd in plugin["pipes"]:
            os.close(fd)
    while watchers:
        pid, status = os.wait()
        if pid in watchers:
            watchers.discard(pid)
            if status != 0:
                _end_children(watchers)
    _end_children(watchers)
    os._exit(0)


def _warm_up(expects: Sequence[str], preload: Sequence[str]) -> None:
    """Import what each plugin's process needs, and leave it to no garbage collector to copy the pages."""
    import gc
    from importlib import import_module

    from moeplan.hooks import plain_data, serving  # noqa: F401

    plain_data.prepare(expects)
    for module in preload:
        with suppress(Exception):  # whoever needs it meets the fault where it imports it
            import_module(module)
    gc.freeze()


def _run(work: Any, plugin: dict[str, Any]) -> NoReturn:
    """Run a process to its end without running what the plugin, or Python, left for the exit."""
    status = 1
    try:
        work(plugin)
        status = 0
    finally:
        os._exit(status)


def _watch(plugin: dict[str, Any]) -> None:
    """Fork the plugin's process, wait for its end or the host's, end what is left and say how it ended."""
    questions, answers, told = plugin["pipes"]
    _close_others(plugin["pipes"])
    os.setsid()
    _adopt_orphans()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    watcher = os.getpid()
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        _run(lambda plugin: _serve(plugin, watcher), plugin)
    os.close(questions)
    os.close(answers)
    status = _wait(pid, woken, told)
    _end_tree(pid)
    with suppress(OSError):
        os.write(told, str(status).encode())


def _serve(plugin: dict[str, Any], watcher: int) -> None:
    import gc

    from moeplan.hooks.serving import serve

    questions, answers, _told = plugin["pipes"]
    os.setsid()
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == watcher:
        _close_others((questions, answers))
        gc.enable()
        serve(plugin["name"], plugin["value"], questions, answers)


def _wait(pid: int, woken: int, told: int) -> int:
    """Return the exit status, negative for a signal; 0 where the host closed its pipe or wants an end before.

    The status is not collected: until then no other process can have the group's number.
    """
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(told, 0)  # no event is asked for; POLLERR comes when nobody reads any more
    while True:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is not None:
            return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        for fd, _event in poll.poll():
            if fd == told or signal.SIGTERM in os.read(woken, 4096):
                return 0


def _end_tree(pid: int) -> None:
    """End a process, its group, and whatever of its offspring lost its parent; collect them."""
    for end in (os.kill, os.killpg):
        with suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)
    _end_children(())


def _end_children(but: Any) -> None:
    """End and collect all children but some; those of their offspring that lose their parent become children."""
    ends = time.monotonic_ns() + _END_NS
    while time.monotonic_ns() < ends:
        left = [pid for pid in _children() if pid not in but]
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if but and not left:
            return
        try:
            collected = [os.waitpid(pid, os.WNOHANG)[0] for pid in left or [-1]]
        except ChildProcessError:
            return
        if not any(collected):
            time.sleep(0.0005)


def _children() -> list[int]:
    """Return the numbers of this process's children, where the kernel lists them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listed:
            return [int(pid) for pid in listed.read().split()]
    except OSError:
        return []


def _adopt_orphans() -> None:
    """Become the parent of offspring that lose theirs, so that nothing gets away by forking twice."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    """Call prctl(2) where there is one; without it a plugin that tries hard may leave a process behind."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _close_others(kept: Any) -> None:
    """Close every file but the standard ones and ``kept``."""
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        numbers = list(range(3, 1024))
    for fd in numbers:
        if fd > 2 and fd not in kept:
            with suppress(OSError):
                os.close(fd)
