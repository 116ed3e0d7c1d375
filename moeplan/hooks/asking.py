"""Ask plugins: each in a session that is kept, or in this process where no deadline is given."""

from __future__ import annotations

import json
import subprocess
import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from moeplan.errors import InputError
from moeplan.hooks.discovery import PluginEntry
from moeplan.hooks.faults import Fault
from moeplan.hooks.frames import MAX_ANSWER_BYTES
from moeplan.hooks.sessions import Session, launch

if TYPE_CHECKING:
    from moeplan.hooks.calling import LoadedPlugin

__all__ = ["Sessions"]

_AT_ONCE = 32
"""Sessions of one launcher: each has six open files while it starts."""
_END_SECONDS = 3


class _Running:
    """What is to be ended: sessions by plugin, and their launchers."""

    def __init__(self) -> None:
        self.sessions: dict[PluginEntry, Session] = {}
        self.launchers: list[subprocess.Popen[bytes]] = []


class Sessions:
    """The sessions of a host. They end when it is closed, is collected as garbage, or the interpreter exits."""

    def __init__(self) -> None:
        self._running = _Running()
        self._loaded: dict[PluginEntry, LoadedPlugin] = {}
        self._lock = threading.Lock()
        self._end = weakref.finalize(self, _end, self._running)

    def start(
        self, entries: Sequence[PluginEntry], expects: Collection[str] = (), preload: Collection[str] = ()
    ) -> None:
        """Start a session for each plugin, side by side; each loads its plugin while nobody waits for it.

        Args:
            entries: the plugins.
            expects: hooks that will be called, for which the processes are prepared.
            preload: modules that the plugins will import.
        """
        if not self._end.alive:
            raise RuntimeError("the host of these plugins is closed")
        for first in range(0, len(entries), _AT_ONCE):
            some = entries[first : first + _AT_ONCE]
            launcher, sessions = launch(some, expects, preload)
            self._running.launchers.append(launcher)
            self._running.sessions.update(zip(some, sessions, strict=True))

    def close(self) -> None:
        """End all sessions and wait until they have ended."""
        self._end()

    def ask(
        self, entry: PluginEntry, hook: str, calls: Sequence[Mapping[str, Any]], deadline_ms: int | None
    ) -> tuple[list[Any], list[Any]]:
        """Call a plugin's hook once or several times.

        Args:
            entry: the plugin.
            hook: a hook's name.
            calls: the arguments of each call as JSON values.
            deadline_ms: time for all these calls, the start of a session included where there is none; None calls in
                this process, where a plugin that hangs cannot be ended.

        Returns:
            The result of each call as JSON values, and the names that the plugin says are its hooks'.

        Raises:
            Fault: the plugin failed at one of the calls, was too slow or said too much.
        """
        from moeplan.hooks.serving import answer, question_of

        question = question_of(hook, calls)
        if deadline_ms is None:
            data = answer(lambda: self._load(entry), json.loads(question))
        else:
            with self._lock:
                data = self._session(entry).ask(question, deadline_ms)
        return _read(data, len(calls))

    def _load(self, entry: PluginEntry) -> LoadedPlugin:
        from moeplan.hooks.calling import load_plugin

        if entry not in self._loaded:
            self._loaded[entry] = load_plugin(entry.name, entry.value)
        return self._loaded[entry]

    def _session(self, entry: PluginEntry) -> Session:
        session = self._running.sessions.get(entry)
        if session is None or not session.open:
            self.start([entry])
        return self._running.sessions[entry]


def _read(data: bytes, calls: int) -> tuple[list[Any], list[Any]]:
    """Return values and hooks of an answer; nothing in it is believed but that it is strict JSON of its form."""
    from moeplan.model.plugin import FAILURE_CODES
    from moeplan.wire.strict_json import parse_strict

    try:
        got = parse_strict(data, max_bytes=MAX_ANSWER_BYTES)
    except InputError as error:
        raise Fault("malformed_result", f"the answer is no strict JSON: {error}") from None
    if type(got) is dict and set(got) == {"values", "hooks"} and type(got["hooks"]) is list:
        values = got["values"]
        if type(values) is list and len(values) == calls:
            return values, got["hooks"]
    if type(got) is dict and set(got) == {"code", "message", "issues"} and got["code"] in FAILURE_CODES:
        raise Fault(got["code"], str(got["message"]) or "no reason given", _issues(got["issues"]))
    raise Fault("malformed_result", "the plugin's process did not answer in the form of the host")


def _issues(told: Any) -> list[dict[str, str | None]]:
    from moeplan.model.plugin import InputFault
    from moeplan.wire.converter import structure

    try:
        structure(told, tuple[InputFault, ...])
    except InputError as error:
        raise Fault("malformed_result", f"its issues are refused: {error.issues[0]}") from None
    return list(told)


def _end(running: _Running) -> None:
    """Close the sessions and collect their launchers.

    In a forked copy of the host's process this closes copies and no more: ``subprocess`` signals only its own children.
    """
    for session in running.sessions.values():
        session.close()
    for launcher in running.launchers:
        with suppress(ProcessLookupError):
            launcher.terminate()
        try:
            launcher.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            launcher.kill()
            launcher.wait()
    running.sessions.clear()
    running.launchers.clear()
