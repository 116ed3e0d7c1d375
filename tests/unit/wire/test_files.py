"""Files at the edge: whole or not at all, and refused when they are not at rest."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moeplan.errors import StoreError
from moeplan.wire.files import open_regular, read_file, write_chunks, write_file


def _code(call: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as caught:
        call()
    assert str(caught.value).isprintable()
    return caught.value.issues[0].code


def test_reads_and_follows_the_callers_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "l").symlink_to("a")
    assert read_file(tmp_path / "l") == b"abc"
    assert read_file(str(tmp_path / "a"), max_bytes=3) == b"abc"
    assert _code(lambda: read_file(tmp_path / "a", max_bytes=2)) == "too_large"


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null"), Path("/dev/zero")):
        assert _code(lambda path=path: read_file(path)) == "not_a_regular_file"  # type: ignore[misc]


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_bytes(b"")
    for path in ("none", "loop", "file/x", "n" * 300, "\x1b[31mred"):
        assert _code(lambda path=path: read_file(tmp_path / path)) == "file_read"  # type: ignore[misc]
    assert _code(lambda: read_file("a\0b")) == "invalid_path"


def test_a_link_may_be_forbidden(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "l").symlink_to("a")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        with open_regular("a", dir_fd=descriptor, flags=os.O_NOFOLLOW) as stream:
            assert stream.read() == b"abc"
        with pytest.raises(StoreError, match="cannot read"), open_regular("l", dir_fd=descriptor, flags=os.O_NOFOLLOW):
            pytest.fail("must not open")
    finally:
        os.close(descriptor)


def _grow(path: Path) -> None:
    with open(path, "ab") as stream:
        stream.write(b"!")


def _cut(path: Path) -> None:
    os.truncate(path, 1)


def _rewrite(path: Path) -> None:
    path.write_bytes(b"xyz")
    os.utime(path, ns=(5, 5))


@pytest.mark.parametrize("change", [_grow, _cut, _rewrite])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")

    def look() -> None:
        with open_regular(path) as stream:
            stream.read(1)
            change(path)
            stream.read()

    assert _code(look) == "changed_while_read"


def test_a_file_that_vanishes_while_it_is_read_was_still_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    with open_regular(path) as stream:
        path.unlink()
        assert stream.read() == b"abc"


def test_writes_with_the_callers_umask_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "out"
    old = os.umask(0o027)
    try:
        write_file(path, b"one")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(old)
    write_chunks(str(path), [b"t", b"", b"wo"])
    assert path.read_bytes() == b"two"
    write_file(tmp_path / ("n" * 255), b"long name")
    assert sorted(os.listdir(tmp_path)) == ["n" * 255, "out"]


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


@pytest.mark.parametrize("call", ["replace", "fsync", "fchmod"])
@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, reason: int
) -> None:
    def fail(*_args: object, **_rest: object) -> None:
        raise OSError(reason, os.strerror(reason))

    (tmp_path / "out").write_bytes(b"old")
    monkeypatch.setattr(os, call, fail)
    assert _code(lambda: write_file(tmp_path / "out", b"new")) == "file_write"
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"old"


def test_a_source_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        write_chunks(tmp_path / "out", broken())
    assert os.listdir(tmp_path) == []


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert _code(lambda: write_file(tmp_path / "none" / "out", b"")) == "file_write"
    assert _code(lambda: write_file(tmp_path / "file" / "out", b"")) == "file_write"
    assert _code(lambda: write_file(tmp_path, b"")) == "not_a_regular_file"
    assert _code(lambda: write_file("a\0b", b"")) == "invalid_path"
    assert os.listdir(tmp_path) == ["file"]


def test_a_device_or_pipe_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/null")):
        assert _code(lambda path=path: write_file(path, b"x")) == "not_a_regular_file"  # type: ignore[misc]
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_real_full_device_is_a_named_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary file's descriptor is led to a device that is always full."""
    plain = os.fdopen

    def full(descriptor: int, mode: str) -> object:
        os.dup2(os.open("/dev/full", os.O_WRONLY), descriptor)
        return plain(descriptor, mode)

    monkeypatch.setattr(os, "fdopen", full)
    assert _code(lambda: write_file(tmp_path / "out", b"x" * 100_000)) == "file_write"
    assert os.listdir(tmp_path) == []
