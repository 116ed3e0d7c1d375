"""``moeplan plugins`` and ``moeplan profiles``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moeplan.cli.main import main
from moeplan.errors import Issue, PluginError
from tests.hooks.plugins import add_plugin


@pytest.mark.parametrize("command", ["plugins", "profiles"])
def test_nothing_installed_is_said_and_no_error(
    command: str, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "no plugin is installed\n")
    assert main([command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {command: [], "failures": []}


def test_what_is_installed_is_listed_and_failures_are_named(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_plugin(installed, "good", profiles=("one", "opt/two"))
    add_plugin(installed, "bad", "raise RuntimeError('no \\x1b[31mGPU')")
    assert main(["plugins"]) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines()[2].split() == ["good", "1.0", "vllm", "test", "2", "good-dist"]
    assert shown.err.startswith(
        "error: [import_failed] plugin bad 1.0: load: importing made_bad_dist raised RuntimeErr"
    )
    assert "\x1b" not in shown.err
    assert main(["plugins", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["plugins"] == [
        {
            "name": "good",
            "version": "1.0",
            "distribution": "good-dist",
            "engine": "vllm",
            "vendor": "test",
            "hooks": ["moeplan_runtime"],
            "profiles": ["one", "opt/two"],
            "rules": [{"id": "T-1", "origin": "shared"}],
        }
    ]
    assert [(one["plugin"], one["code"], one["hook"]) for one in told["failures"]] == [("bad", "import_failed", "load")]


def test_profiles_are_listed_with_status_and_source(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_plugin(installed, "good", profiles=("one", "opt/two"))
    assert main(["profiles"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[3].split() == ["opt/two", "vllm", "test", "good", "measured", "a", "document"]
    assert main(["profiles", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["profiles"][0]
    assert (first["id"], first["plugin"], first["version"], first["status"]) == ("one", "good", "1.0", "measured")
    assert first["sources"] == [{"source": "a document", "locator": "section 1"}]


def test_one_plugin_alone_is_loaded(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_plugin(installed, "good")
    add_plugin(installed, "bad", "raise RuntimeError")
    assert main(["plugins", "--plugin", "good"]) == 0
    assert main(["profiles", "--plugin", "god", "--json"]) == 2
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["error"]["code"] == "unknown_plugin"


def test_a_plugin_that_is_at_fault_alone_exits_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_allow: object) -> None:
        raise PluginError(Issue("plugin bad", "raised", "moeplan_check: the hook raised"))

    monkeypatch.setattr("moeplan.hooks.host.open_host", fail)
    assert main(["plugins", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["path"] == "plugin bad"
