"""Asks a plugin in fresh processes whose environments differ in everything that an answer may not depend on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from moeplan import version
from moeplan.hooks.discovery import PluginEntry

__all__ = ["Answered", "Asked", "Question", "ask"]

_SURROUNDINGS: tuple[Mapping[str, str], ...] = (
    {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8", "COLUMNS": "80"},
    {"PYTHONHASHSEED": "4242", "TZ": "Asia/Kathmandu", "LC_ALL": "C", "COLUMNS": "33"},
)
_WITHOUT = ("HOME", "USER", "LOGNAME", "HOSTNAME", "PWD", "PYTEST_CURRENT_TEST")


@attrs.frozen
class Question:
    """One call of a hook: ``about`` says for messages what it is called with, ``arguments`` are JSON values."""

    hook: str
    about: str
    arguments: Mapping[str, Any] = attrs.field(repr=False)


@attrs.frozen
class Answered:
    """What came of a question: a value in JSON, or a failure's code and message; ``seen`` are impure deeds."""

    question: Question
    value: Any
    code: str | None
    message: str
    seen: tuple[str, ...]

    def told(self) -> str:
        """Return the hook and what it was called with, as messages name it."""
        return f"{self.question.hook} with {self.question.about}"


@attrs.frozen
class Asked:
    """All answers of one process, in the order of the questions; ``fault`` where the process gave none."""

    answers: tuple[Answered, ...]
    seen_on_load: tuple[str, ...] = ()
    fault: str | None = None


def ask(entry: PluginEntry, questions: Sequence[Question], surroundings: int, deadline_s: int) -> Asked:
    """Return the answers of a new process.

    Args:
        entry: the plugin.
        questions: what it is asked, one after the other.
        surroundings: 0 or 1: which of two environments, with a directory of its own to work in.
        deadline_s: seconds after which the process is ended: a plugin that hangs is to be named, none is to be quick.
    """
    asked = {
        "name": entry.name,
        "value": entry.value,
        "path": [os.path.abspath(path) for path in sys.path],
        "calls": [{"hook": one.hook, "arguments": one.arguments} for one in questions],
    }
    environment = {key: value for key, value in os.environ.items() if key not in _WITHOUT}
    with tempfile.TemporaryDirectory(prefix="moeplan-suite-") as directory:
        environment |= {**_SURROUNDINGS[surroundings], "HOME": directory, "PYTHONPATH": _python_path()}
        try:
            done = subprocess.run(
                [sys.executable, "-m", "moeplan.testing.child"],
                input=json.dumps(asked),
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                cwd=directory,
                env=environment,
                timeout=deadline_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Asked((), (), f"no answer in {deadline_s} s: a hook hangs")
    if done.returncode != 0 or not done.stdout:
        return Asked((), (), f"the process ended with {done.returncode}: {done.stderr[-2000:]}")
    return _read(json.loads(done.stdout), questions)


def _python_path() -> str:
    """Return a path on which the child finds this moeplan, however it came to this process."""
    return os.path.dirname(os.path.dirname(os.path.abspath(version.__file__)))


def _read(told: dict[str, Any], questions: Sequence[Question]) -> Asked:
    if told["load"] is not None:
        code, message = told["load"]
        return Asked((), tuple(told["seen"]), f"it cannot be loaded [{code}]: {message}")
    answers = (
        Answered(question, one.get("value"), one.get("code"), one.get("message", ""), tuple(one["seen"]))
        for question, one in zip(questions, told["answers"], strict=True)
    )
    return Asked(tuple(answers), tuple(told["seen"]))
