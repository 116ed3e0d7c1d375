"""The directory is written whole or not at all, and is never taken from anybody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from moeplan.errors import StoreError
from moeplan.rendering import directory
from moeplan.rendering.assembly import assemble
from moeplan.rendering.directory import compare_directory, write_directory
from tests.unit.rendering.made import MADE_WITH, NAMESPACE, plan, rendering, site


def files(*given: tuple[str, str, str]) -> dict[str, bytes]:
    return assemble(plan(), site(), rendering(*given), MADE_WITH).files


def contents(path: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in path.iterdir()}


def test_it_writes_every_file_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "deploy"
    assert write_directory(out, files())
    assert contents(out) == files()
    assert [entry.name for entry in tmp_path.iterdir()] == ["deploy"]
    assert out.stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_an_earlier_rendering_is_replaced_and_its_other_files_go(tmp_path: Path) -> None:
    write_directory(tmp_path / "out", files())
    assert not write_directory(tmp_path / "out", files())
    other = files(("10-namespace.yaml", "manifest", NAMESPACE))
    assert write_directory(tmp_path / "out", other)
    assert contents(tmp_path / "out") == other
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_an_empty_directory_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert write_directory(tmp_path / "out", files())
    assert contents(tmp_path / "out") == files()


@pytest.mark.parametrize("foreign", ["notes.txt", "manifest-set.json"])
def test_what_no_rendering_left_there_is_not_touched(foreign: str, tmp_path: Path) -> None:
    (tmp_path / foreign).write_text("mine")
    with pytest.raises(StoreError) as caught:
        write_directory(tmp_path, files())
    assert caught.value.issues[0].code == "foreign_file"
    assert contents(tmp_path) == {foreign: b"mine"}


def test_a_file_beside_the_rendering_is_foreign(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_directory(out, files())
    (out / "secret.yaml").write_text("mine")
    with pytest.raises(StoreError) as caught:
        write_directory(out, files(("10-namespace.yaml", "manifest", NAMESPACE)))
    assert caught.value.issues[0].code == "foreign_file"
    (out / "secret.yaml").unlink()
    (out / "deeper").mkdir()
    with pytest.raises(StoreError) as caught:
        write_directory(out, files())
    assert caught.value.issues[0].code == "foreign_file"


def test_an_edited_file_is_not_overwritten(tmp_path: Path) -> None:
    write_directory(tmp_path / "out", files())
    edited = tmp_path / "out" / "20-engine.yaml"
    edited.write_text(edited.read_text() + "# by hand\n")
    before = contents(tmp_path / "out")
    with pytest.raises(StoreError) as caught:
        write_directory(tmp_path / "out", files(("10-namespace.yaml", "manifest", NAMESPACE)))
    assert caught.value.issues[0].code == "edited_file"
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("at", ["write_file", "rename"])
def test_nothing_is_left_half_written(at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write_directory(out, files())
    before = contents(out)
    calls = 0

    def full(*_arguments: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(28, "No space left on device")

    real = os.rename

    def rename(old: str, new: str) -> None:
        full()
        real(old, new)

    if at == "rename":
        monkeypatch.setattr(os, "rename", rename)
    else:
        monkeypatch.setattr(directory, "write_file", full)
    with pytest.raises(StoreError, match="No space left"):
        write_directory(out, files(("10-namespace.yaml", "manifest", NAMESPACE)))
    assert contents(out) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_changes_are_told_by_name_with_a_diff(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert {change.word for change in compare_directory(out, files())} == {"added"}
    write_directory(out, files())
    assert compare_directory(out, files()) == ()
    (out / "20-engine.yaml").write_text((out / "20-engine.yaml").read_text().replace("name: main", "name: mine"))
    (out / "own.txt").write_text("x\n")
    changes = {change.name: change for change in compare_directory(out, files())}
    assert {name: change.word for name, change in changes.items()} == {
        "20-engine.yaml": "changed",
        "own.txt": "removed",
    }
    lines = list(changes["20-engine.yaml"].lines())
    assert lines[:2] == ["--- a/20-engine.yaml", "+++ b/20-engine.yaml"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ["-      - name: mine", "+      - name: main"]
    assert next(changes["own.txt"].lines()) == "--- a/own.txt"


def test_a_file_or_a_link_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError) as caught:
        write_directory(tmp_path / "file", files())
    assert caught.value.issues[0].code == "file_read"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "README.md").symlink_to(tmp_path / "file")
    with pytest.raises(StoreError) as caught:
        write_directory(tmp_path / "out", files())
    assert caught.value.issues[0].code == "foreign_file"
    assert (tmp_path / "file").read_text() == "mine"
