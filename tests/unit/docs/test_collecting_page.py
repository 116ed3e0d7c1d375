"""The page on collecting shows the commands that the end-to-end run types, in its order and with its options."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from e2e.work import Work
from tests.unit.docs.pages import ROOT

PAGE = ROOT / "docs" / "collecting.md"
WORK = Work(Path(), Path("env"), 8000)
MODULES = ("planning", "memory", "measuring", "failing", "routing", "pricing", "deciding")
OPEN = "…"
"""What only the run knows: a process, an instant, the directories of evidence."""


def evaluated(node: ast.expr, names: dict[str, Any]) -> list[str]:
    starred = isinstance(node, ast.Starred)
    value = read(node.value if isinstance(node, ast.Starred) else node, names)
    if value is None:
        return [OPEN]
    return [str(word) for word in value] if starred else [str(value)]


def read(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return a word's value, or None: nothing but files and options of ``work`` is asked for, so nothing is started."""
    for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
        if not re.fullmatch(r"str|endpoint|_mark|work\.[a-z]+", ast.unparse(call.func)):
            return None
    try:
        return eval(compile(ast.Expression(node), "e2e", "eval"), names)
    except (NameError, AttributeError, TypeError):
        return None


def commands(module: str) -> Iterator[list[str]]:
    found = importlib.import_module(f"e2e.{module}")
    for function in ast.parse(Path(str(found.__file__)).read_text("utf-8")).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        names: dict[str, Any] = {**vars(found), "work": WORK}
        for node in sorted(
            (one for one in ast.walk(function) if isinstance(one, ast.Assign | ast.Call)), key=lambda one: one.lineno
        ):
            if isinstance(node, ast.Assign):
                assign(node, names)
            elif isinstance(node.func, ast.Name) and node.func.id in ("moeplan", "begin_moeplan"):
                words = [word for argument in node.args for word in evaluated(argument, names)]
                yield [word.removeprefix(f"{ROOT}/") for word in words]


def assign(node: ast.Assign, names: dict[str, Any]) -> None:
    targets = node.targets[0].elts if isinstance(node.targets[0], ast.Tuple) else node.targets
    values = node.value.elts if isinstance(node.value, ast.Tuple) and len(targets) > 1 else [node.value]
    for target, value in zip(targets, values, strict=False):
        known = read(value, names)
        if isinstance(target, ast.Name) and known is not None:
            names[target.id] = known


def shown() -> list[list[str]]:
    section = PAGE.read_text("utf-8").split("## The CPU run, command by command\n")[1].split("\n## ")[0]
    lines = section.replace("\\\n", " ").splitlines()
    typed = [line.strip() for line in lines if line.startswith("    moeplan ")]
    runtime = [str(word) for word in WORK.runtime()]
    words = [shlex.split(line.removesuffix(" &"))[1:] for line in typed]
    return [[part for word in line for part in (runtime if word == "$DEPLOYED" else [word])] for line in words]


def matches(page: list[str], real: list[str]) -> bool:
    """Compare word for word: what only the run knows is one word of the page, or several."""
    pattern = "".join(r"(?:[^\0]+\0)+" if word == OPEN else re.escape(f"{word}\0") for word in real)
    return re.fullmatch(pattern, "".join(f"{word}\0" for word in page)) is not None


def test_the_page_types_what_the_run_types() -> None:
    real = [command for module in MODULES for command in commands(module)]
    assert len(real) > 18
    page = shown()
    lost = [shlex.join(command) for command in real if not any(matches(line, command) for line in page)]
    more = [shlex.join(line) for line in page if not any(matches(line, command) for command in real)]
    assert (lost, more) == ([], [])


def test_another_word_is_seen() -> None:
    assert matches(["import", "x"], ["import", OPEN])
    assert not matches(["import", "x"], ["import", "y"])
    assert matches(["import", "x", "z"], ["import", OPEN])
    assert not matches(["import"], ["import", OPEN])
