"""A bundle directory: what the walk refuses, and what a later read does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from moeplan.bundle import directory as room
from moeplan.bundle.directory import DirectorySource
from moeplan.errors import StoreError, VerificationError


def _code(root: Path) -> tuple[str, str]:
    with pytest.raises(VerificationError) as caught:
        DirectorySource(root)
    assert str(caught.value).isprintable()
    return caught.value.issues[0].code, caught.value.issues[0].path


def test_lists_in_code_point_order_and_reads(tmp_path: Path) -> None:
    for name, data in {"b/c": b"1", "b.d": b"22", "a": b"", "b/B": b"333"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    with DirectorySource(tmp_path) as source:
        assert source.paths() == ("a", "b.d", "b/B", "b/c")
        assert [source.size(path) for path in source.paths()] == [0, 2, 3, 1]
        assert [source.read(path) for path in source.paths()] == [b"", b"22", b"333", b"1"]
        assert b"".join(source.chunks("b/B")) == b"333"


def test_the_named_directory_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_bytes(b"1")
    (tmp_path / "link").symlink_to("real")
    with DirectorySource(tmp_path / "link") as source:
        assert source.read("a") == b"1"


def test_a_hard_link_is_a_file_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "outside").write_bytes(b"1")
    os.link(tmp_path / "outside", tmp_path / "d" / "a")
    with DirectorySource(tmp_path / "d") as source:
        assert source.read("a") == b"1"


def _symlink(root: Path) -> None:
    (root / "x").symlink_to("plan.json")


def _symlinked_directory(root: Path) -> None:
    (root / "x").symlink_to("/")


def _dangling(root: Path) -> None:
    (root / "x").symlink_to("nowhere")


def _pipe(root: Path) -> None:
    os.mkfifo(root / "x")


@pytest.mark.parametrize("plant", [_symlink, _symlinked_directory, _dangling, _pipe])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    (tmp_path / "plan.json").write_bytes(b"{}")
    plant(tmp_path)
    assert _code(tmp_path) == ("container_not_regular", "x")


@pytest.mark.parametrize("name", [b"\xff", b".DS_Store", b"a b", b"\x1b[31m", "é".encode(), b"-x"])
def test_odd_names_are_refused(tmp_path: Path, name: bytes) -> None:
    with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
        pass
    assert _code(tmp_path)[0] == "container_name"


def test_names_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "A").write_bytes(b"1")
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this file system folds case")
    assert _code(tmp_path) == ("container_collision", "a")


def test_empty_directories_are_refused_but_for_attestations(tmp_path: Path) -> None:
    (tmp_path / "attestations").mkdir()
    DirectorySource(tmp_path).__exit__(None, None, None)
    (tmp_path / "evidence").mkdir()
    assert _code(tmp_path) == ("container_empty_directory", "evidence/")


def test_caps_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"123")
    monkeypatch.setattr(room, "MAX_FILES", 2)
    assert _code(tmp_path) == ("container_too_many", "c")
    monkeypatch.undo()
    monkeypatch.setattr(room, "MAX_TOTAL_BYTES", 8)
    assert _code(tmp_path) == ("container_too_large", "c")
    monkeypatch.undo()
    monkeypatch.setattr(room, "MAX_FILE_BYTES", 2)
    assert _code(tmp_path) == ("container_too_large", "a")


def test_a_file_too_large_for_tar_is_refused_without_being_read(tmp_path: Path) -> None:
    with open(tmp_path / "big", "wb") as stream:
        stream.truncate(8**11)
    assert _code(tmp_path) == ("container_too_large", "big")


def test_too_deep_is_refused(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 34)
    deep.mkdir(parents=True)
    assert _code(tmp_path)[0] == "container_too_deep"


def test_read_is_bounded_and_knows_only_its_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    with DirectorySource(tmp_path) as source:
        assert source.read("a", 3) == b"123"
        with pytest.raises(VerificationError) as caught:
            source.read("a", 2)
        assert caught.value.issues[0].code == "container_too_large"
        for path in ("b", "../a", "/etc/hostname"):
            with pytest.raises(VerificationError) as caught:
                source.read(path)
            assert caught.value.issues[0].code == "container_missing"


def _grow(root: Path) -> None:
    with open(root / "d" / "a", "ab") as stream:
        stream.write(b"4")


def _replace(root: Path) -> None:
    (root / "d" / "new").write_bytes(b"123")
    os.replace(root / "d" / "new", root / "d" / "a")


def _touch(root: Path) -> None:
    os.utime(root / "d" / "a", ns=(1, 1))


def _set_back(root: Path) -> None:
    before = (root / "d" / "a").stat()
    (root / "d" / "a").write_bytes(b"321")
    os.utime(root / "d" / "a", ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [_grow, _replace, _touch, _set_back])
def test_a_change_after_the_walk_is_noticed(tmp_path: Path, change: Callable[[Path], None]) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"123")
    with DirectorySource(tmp_path) as source:
        time.sleep(0.02)  # longer than a tick of the file system's clock
        change(tmp_path)
        with pytest.raises(StoreError) as caught:
            source.read("d/a")
    assert (caught.value.issues[0].code, caught.value.issues[0].path) == ("changed_while_read", "d/a")


def test_a_change_between_two_pieces_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "CHUNK_BYTES", 2)
    (tmp_path / "a").write_bytes(b"123456")
    with DirectorySource(tmp_path) as source:
        pieces = source.chunks("a")
        assert next(pieces) == b"12"
        (tmp_path / "a").write_bytes(b"654321")
        os.utime(tmp_path / "a", ns=(1, 1))
        with pytest.raises(StoreError) as caught:
            list(pieces)
    assert caught.value.issues[0].code == "changed_while_read"


def test_a_file_cut_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    size = 4 << 20
    (tmp_path / "a").write_bytes(bytes(size))
    with DirectorySource(tmp_path) as source:
        pieces = source.chunks("a")
        next(pieces)
        os.truncate(tmp_path / "a", 10)
        with pytest.raises(StoreError) as caught:
            list(pieces)
    assert caught.value.issues[0].code == "changed_while_read"


def test_a_file_that_vanished_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    with DirectorySource(tmp_path) as source:
        (tmp_path / "a").unlink()
        with pytest.raises(StoreError) as caught:
            source.read("a")
    assert (caught.value.issues[0].code, caught.value.issues[0].path) == ("file_read", "a")


def test_a_directory_swapped_for_a_link_leads_nowhere(tmp_path: Path) -> None:
    for name in ("bundle", "outside"):
        (tmp_path / name / "d").mkdir(parents=True)
        (tmp_path / name / "d" / "a").write_bytes(name.encode())
    with DirectorySource(tmp_path / "bundle") as source:
        os.rename(tmp_path / "bundle" / "d", tmp_path / "bundle" / "e")
        (tmp_path / "bundle" / "d").symlink_to(tmp_path / "outside" / "d")
        with pytest.raises(VerificationError) as caught:
            source.read("d/a")
    assert caught.value.issues[0].code == "container_not_regular"


def test_a_file_swapped_for_a_link_or_a_pipe_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"1")
    with DirectorySource(tmp_path) as source:
        for name in ("a", "b"):
            (tmp_path / name).unlink()
        (tmp_path / "a").symlink_to("/etc/hostname")
        os.mkfifo(tmp_path / "b")
        with pytest.raises(StoreError, match="cannot read"):
            source.read("a")
        with pytest.raises(StoreError, match="not a regular file"):
            source.read("b")


def test_a_missing_directory_is_the_callers_fault(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        DirectorySource(tmp_path / "none")
    assert caught.value.issues[0].code == "file_read"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(b"1")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with DirectorySource(tmp_path) as source:
            source.read("d/a")
    (tmp_path / "d" / "x").symlink_to("a")
    for _ in range(3):
        with pytest.raises(VerificationError):
            DirectorySource(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
