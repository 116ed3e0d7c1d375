from __future__ import annotations

import hashlib
import os
from pathlib import Path

import attrs
import pytest

from moeplan.checkpoint.hashing import default_workers, hash_files
from moeplan.checkpoint.listing import list_files
from moeplan.errors import InputError, StoreError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(7):
        (tmp_path / f"f{number}").write_bytes(os.urandom(number * 700_000))
    return tmp_path


@pytest.mark.parametrize("workers", [None, 1, 3, 64])
def test_equal_to_hashlib_whatever_the_number_of_workers(folder: Path, workers: int | None) -> None:
    expected = {path.name: "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert hash_files(list_files(folder), workers=workers) == expected


def test_nothing_to_hash() -> None:
    assert hash_files(()) == {}


def test_progress_rises_to_the_total(folder: Path) -> None:
    told: list[tuple[int, int]] = []
    hash_files(list_files(folder), workers=2, progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1] == (21 * 700_000, 21 * 700_000)
    assert len(told) == 0 + 1 + 2 + 3 + 3 + 4 + 5  # ceil(n * 700,000 / 2^20) chunks each


@pytest.mark.parametrize("workers", [0, -1, 257])
def test_workers_out_of_range(folder: Path, workers: int) -> None:
    with pytest.raises(InputError) as caught:
        hash_files(list_files(folder), workers=workers)
    assert caught.value.issues[0].path == "--workers"
    assert 1 <= default_workers() <= 16


def refused(folder: Path, change: Path, action: str) -> str:
    files = list_files(folder)
    if action == "vanish":
        change.unlink()
    elif action == "touch":
        os.utime(change, ns=(1, 1))
    elif action == "replace":
        status = change.stat()
        other = change.with_name("other")
        other.write_bytes(bytes(status.st_size))
        os.utime(other, ns=(status.st_mtime_ns, status.st_mtime_ns))
        other.replace(change)
    elif action == "grow":
        change.write_bytes(change.read_bytes() + b"x")
    with pytest.raises(StoreError) as caught:
        hash_files(files)
    assert caught.value.issues[0].path == str(change)
    return caught.value.issues[0].code


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("vanish", "file_read"),
        ("touch", "changed_while_read"),
        ("replace", "changed_while_read"),
        ("grow", "changed_while_read"),
    ],
)
def test_a_file_that_is_no_longer_what_was_listed(folder: Path, action: str, code: str) -> None:
    assert refused(folder, folder / "f3", action) == code


@pytest.mark.parametrize("size", [0, 10_000_000])
def test_a_file_that_changes_while_it_is_read(folder: Path, size: int) -> None:
    def disturb(_done: int, _total: int) -> None:
        os.truncate(folder / "f6", size)

    with pytest.raises(StoreError) as caught:
        hash_files(list_files(folder), workers=1, progress=disturb)
    assert caught.value.issues[0].code == "changed_while_read"


def test_a_stated_size_is_held_against_the_bytes_read(folder: Path) -> None:
    (file,) = (file for file in list_files(folder) if file.name == "f2")
    with pytest.raises(StoreError):
        hash_files([attrs.evolve(file, size=1)])


def test_the_rest_is_not_read_on(folder: Path) -> None:
    files = list_files(folder)
    (folder / "f6").unlink()  # the largest, so the first
    read: list[int] = []
    with pytest.raises(StoreError):
        hash_files(files, workers=1, progress=lambda done, _total: read.append(done))
    assert len(read) < 13


def test_an_unreadable_file_is_named(folder: Path) -> None:
    files = list_files(folder)
    (folder / "f1").unlink()
    (folder / "f1").mkdir()
    with pytest.raises(StoreError) as caught:
        hash_files(files)
    assert caught.value.issues[0].path == str(folder / "f1")
