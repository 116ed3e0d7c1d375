"""``moeplan import auto``: say what files are, and import what can be imported with what is stated."""

from __future__ import annotations

import argparse
import io
import shlex
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moeplan.cli.output import emit_json, emit_text, note, table
from moeplan.errors import InputError, Issue, MoeplanError, StoreError, escape

if TYPE_CHECKING:
    from moeplan.workflows.import_auto import FoundFile, Group

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan import auto demo/trials"
_MISSING = "not imported"
_DIFFER = "than the first trial"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files and folders, looked through to any depth")
    parser.add_argument("-o", "--output", metavar="DIR", help="import what can be imported, a folder each below DIR")
    parser.add_argument(
        "--with",
        dest="stated",
        metavar="OPTIONS",
        default="",
        help="options of the imports in one text, --with='--plan plan.json --checkpoint checkpoint.json …'; each "
        "import takes those it has",
    )
    parser.add_argument("--json", action="store_true", help='print {"files": […], "imports": […]}')


def run(args: argparse.Namespace) -> int:
    """Look at every file; with ``-o`` import each group. 1 where an import failed, or found errors."""
    from moeplan.workflows.import_auto import find_files, groups_of

    found = find_files([Path(item) for item in args.paths])
    groups = groups_of(found)
    if args.output:
        _make(args.output)
        groups, done = _import_all(args, groups)
    else:
        done = []
    _show(args, found, groups, done)
    return 1 if any(code != 0 for code, _ in done) else 0


def _make(path: str) -> None:
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        if any(Path(path).iterdir()):
            raise InputError(
                Issue("--output", "not_empty", "folder not empty", "a missing or empty one", escape(path, 400))
            )
    except OSError as error:
        why = error.strerror or "cannot be made"
        raise StoreError(Issue(escape(path, 400), "cannot_write", why, "a folder to make")) from None


def _import_all(args: argparse.Namespace, groups: Sequence[Group]) -> tuple[tuple[Group, ...], list[tuple[int, str]]]:
    """Import each group; trials that are not of one run are imported one by one."""
    made: list[Group] = []
    done: list[tuple[int, str]] = []
    for group in groups:
        result = _import(args, len(made) + 1, group)
        parts = group.parts if result[0] != 0 and _DIFFER in result[1] else ()
        for part in parts:
            made.append(part)
            done.append(_import(args, len(made), part))
        if not parts:
            made.append(group)
            done.append(result)
    return tuple(made), done


def _import(args: argparse.Namespace, number: int, group: Group) -> tuple[int, str]:
    """Run one import; return its exit code and where it went, or why it did not go."""
    from moeplan.cli import import_command

    parser = argparse.ArgumentParser(prog="moeplan import", add_help=False, exit_on_error=False)
    import_command.add_arguments(parser)
    actions = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    action = actions.choices[group.command]
    target = str(Path(args.output) / f"{number:03d}-{group.command}")
    words = [*group.words[1:], *_taken(action, _stated(args.stated)), "-o", target]  # what is stated wins
    try:
        parsed = _parse(action, words)
        parsed.action = group.command
        with redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
            return import_command.run(parsed), target
    except (MoeplanError, argparse.ArgumentError, _RefusedError) as error:
        return 1, f"{_MISSING}: {escape(str(error).splitlines()[0], 400)}"


def _stated(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(
            Issue("--with", "invalid_value", "no list of options", "words as a shell reads them", escape(str(error)))
        ) from None


class _RefusedError(Exception):
    """The import's parser refused its arguments."""


def _parse(action: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    def refuse(message: str) -> Any:
        raise _RefusedError(message)

    action.error = refuse  # type: ignore[method-assign]
    return action.parse_args(list(words))


def _taken(action: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return those of the stated options that this import has, each with its values."""
    kept, taking = [], False
    for word in words:
        if word.startswith("-") and not word[1:2].isdigit():
            taking = word.partition("=")[0] in action._option_string_actions
        if taking:
            kept.append(word)
    return kept


def _readable(value: Any) -> Any:
    """Return a JSON value in which bytes of file names that are no UTF-8 are written as escapes."""
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_readable(item) for item in value]
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _show(
    args: argparse.Namespace, found: Sequence[FoundFile], groups: Sequence[Group], done: Sequence[tuple[int, str]]
) -> None:
    from moeplan.wire.converter import unstructure

    commands = [shlex.join(["moeplan", "import", *group.words]) for group in groups]
    if args.json:
        told: list[Any] = [{"exitCode": code, "result": text} for code, text in done]
        results = told or [None] * len(groups)
        imports = [{"command": words, "done": result} for words, result in zip(commands, results, strict=True)]
        emit_json(_readable({"files": [unstructure(item) for item in found], "imports": imports}))
        return
    rows = [(item.path, item.tool, item.sure, item.command or "-", item.note) for item in found]
    emit_text(table(("file", "what", "sure", "import", "note"), rows))
    if not done:
        for words in commands:
            emit_text(escape(words, 4000) + " …")
        note("nothing was imported: give -o DIR, and --with what the tools' files do not hold")
    for words, (code, text) in zip(commands, done, strict=False):
        emit_text(f"{escape(words, 4000)}: {text}" + ("" if code == 0 else f" [exit {code}]"))
