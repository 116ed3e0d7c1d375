"""docs/cli.md has each command with its example and its arguments, and each --help has an example."""

from __future__ import annotations

import pytest

from moeplan.cli.main import COMMANDS, main
from tests.unit.docs.options import documented_parsers, example, rows
from tests.unit.docs.pages import ROOT, sections, table_rows

_PAGE = ROOT / "docs/cli.md"


def test_page_names_every_command_in_the_order_of_the_help() -> None:
    listed = [title.removeprefix("moeplan ") for title in sections(_PAGE, 2) if title.startswith("moeplan ")]
    assert listed == list(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_section_says_what_the_command_does_and_shows_its_example(command: str) -> None:
    text = sections(_PAGE, 2)[f"moeplan {command}"]
    assert COMMANDS[command][0].upper() + COMMANDS[command][1:] + "." in " ".join(text.split())
    assert f"\n    {example(command)}\n" in text


@pytest.mark.parametrize("words", documented_parsers())
def test_arguments_are_those_of_the_parser(words: str) -> None:
    command, _, action = words.partition(" ")
    text = sections(_PAGE, 2)[f"moeplan {command}"]
    if action:
        text = text.split(f"### {action}\n")[1]
    told = [tuple(cell.replace("\0", r"\|") for cell in row) for row in table_rows(text.replace(r"\|", "\0"))]
    assert told == rows(documented_parsers()[words])


@pytest.mark.parametrize("words", [*COMMANDS, *(words for words in documented_parsers() if " " in words)])
def test_help_has_an_example(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*words.split(), "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert f"example:\n  moeplan {words.split()[0]}" in shown
