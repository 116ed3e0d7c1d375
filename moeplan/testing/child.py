"""The process in which the suite asks a plugin: one question after the other, under the guard, with JSON in and out.

Run as ``python -m moeplan.testing.child``; the question is on standard input.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from moeplan.testing.guard import Guard

__all__ = ["main"]


def main() -> None:
    """Answer what standard input asks; what the plugin prints goes nowhere."""
    asked = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    sys.path[:0] = [path for path in asked["path"] if path not in sys.path]
    sys.dont_write_bytecode = True
    guard = Guard()
    guard.install()
    json.dump(_answer(asked, guard), out)
    out.close()


def _answer(asked: dict[str, Any], guard: Guard) -> dict[str, Any]:
    from moeplan.hooks.calling import load_plugin
    from moeplan.hooks.faults import Fault

    try:
        with guard.armed():
            plugin = load_plugin(asked["name"], asked["value"])
    except Fault as fault:
        return {"load": [fault.code, fault.message], "seen": guard.seen, "answers": []}
    return {"load": None, "seen": guard.seen, "answers": [_called(plugin, call, guard) for call in asked["calls"]]}


def _called(plugin: Any, call: dict[str, Any], guard: Guard) -> dict[str, Any]:
    from moeplan.hooks.faults import Fault

    before = len(guard.seen)
    try:
        with guard.armed():
            answer = {"value": plugin.call(call["hook"], call["arguments"])}
    except Fault as fault:
        answer = {"code": fault.code, "message": fault.message}
    return answer | {"seen": guard.seen[before:]}


if __name__ == "__main__":
    main()
