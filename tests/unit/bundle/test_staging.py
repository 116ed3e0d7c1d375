"""A directory appears whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from moeplan.bundle.staging import staged_directory, write_member
from moeplan.errors import StoreError


def test_it_appears_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "out"
    with staged_directory(target) as staging:
        assert write_member(staging, "a/b", [b"ab", b"c"]) == (
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 3
        )  # fmt: skip
        assert not target.exists()
    assert (target / "a" / "b").read_bytes() == b"abc"
    assert os.listdir(tmp_path) == ["out"]


def test_an_empty_directory_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with staged_directory(tmp_path / "out") as staging:
        write_member(staging, "a", [b"1"])
    assert os.listdir(tmp_path / "out") == ["a"]


def test_nothing_is_left_after_an_error(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"1"
        raise RuntimeError

    with pytest.raises(RuntimeError), staged_directory(tmp_path / "out") as staging:
        write_member(staging, "a", broken())
    assert os.listdir(tmp_path) == []


def _file(target: Path) -> None:
    target.write_bytes(b"mine")


def _full(target: Path) -> None:
    target.mkdir()
    (target / "mine").write_bytes(b"")


def _link(target: Path) -> None:
    target.symlink_to("elsewhere")


@pytest.mark.parametrize("plant", [_file, _full, _link])
def test_what_is_in_the_way_stays(tmp_path: Path, plant: object) -> None:
    assert callable(plant)
    plant(tmp_path / "out")
    with pytest.raises(StoreError) as caught, staged_directory(tmp_path / "out"):
        pytest.fail("must not begin")
    assert caught.value.issues[0].code == "target_exists"
    assert os.listdir(tmp_path) == ["out"]


def test_a_missing_parent_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught, staged_directory(tmp_path / "none" / "out"):
        pytest.fail("must not begin")
    assert caught.value.issues[0].code == "file_write"


@pytest.mark.parametrize("call", ["fsync", "rename", "replace"])
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def full(*_args: object, **_rest: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(StoreError, match="No space left"), staged_directory(tmp_path / "out") as staging:
        write_member(staging, "a", [b"1"])
    assert os.listdir(tmp_path) == []
