"""A plugin's own process: it loads the plugin once and answers the host's questions until the host has no more.

Questions and answers are frames of JSON (:mod:`moeplan.hooks.frames`); nothing is ever pickled. A question is
``{"hook": …, "calls": [arguments, …]}``; the answer is ``{"values": […], "hooks": […]}``, a value for each call, or
``{"code": …, "message": …, "issues": […]}`` where one of them failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moeplan.hooks.calling import LoadedPlugin, load_plugin
from moeplan.hooks.faults import Fault
from moeplan.hooks.frames import MAX_ANSWER_BYTES, frame, read_frame, too_large, write_all

__all__ = ["answer", "question_of", "serve"]


def question_of(hook: str, calls: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the question that calls a hook, once for each of the arguments."""
    return _encoded({"hook": hook, "calls": list(calls)})


def answer(load: Callable[[], LoadedPlugin], question: dict[str, Any]) -> bytes:
    """Return the answer to a question as JSON of at most :data:`MAX_ANSWER_BYTES` bytes."""
    try:
        plugin = load()
        values = [plugin.call(question["hook"], arguments) for arguments in question["calls"]]
        data = _encoded({"values": values, "hooks": list(plugin.hooks)})
        if len(data) > MAX_ANSWER_BYTES:
            raise too_large()
    except Fault as fault:
        return _encoded({"code": fault.code, "message": fault.message, "issues": list(fault.issues)})
    return data


def _encoded(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode("ascii")


_RUNTIME = question_of("moeplan_runtime", [{}])


def serve(name: str, value: str, questions: int, answers: int) -> None:
    """Load the plugin of an entry point and answer what is asked, until the pipe of the questions ends.

    What the plugin is, it says before anybody asks: every host asks that first, and the answer is always the same.
    """
    load = _loading(name, value)
    ready = {_RUNTIME: answer(load, json.loads(_RUNTIME))}
    while (asked := read_frame(questions)) is not None:
        number, data = asked
        write_all(answers, frame(number, ready.pop(data, b"") or answer(load, json.loads(data))))


def _loading(name: str, value: str) -> Callable[[], LoadedPlugin]:
    """Load the plugin now, so that it is there when it is asked; return what gives it, or its fault each time."""
    try:
        plugin = load_plugin(name, value)
    except Fault as error:
        fault = error

        def fail() -> LoadedPlugin:
            raise fault

        return fail
    return lambda: plugin
