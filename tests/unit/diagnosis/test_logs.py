"""Files, pipes, streams and gzip; what is no log is a named error."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from moeplan.diagnosis.logs import Log, check_log, open_log
from moeplan.errors import InputError, MoeplanError, StoreError


def content(log: Log, block_bytes: int = 1 << 17) -> bytes:
    with open_log(log) as opened:
        return b"".join(opened.blocks(block_bytes))


def fault(log: Log) -> MoeplanError:
    with pytest.raises(MoeplanError) as caught:
        content(log)
    return caught.value


@pytest.mark.parametrize("size", [1, 5, 1 << 17])
@pytest.mark.parametrize("data", [b"", b"a", b"\x1f", b"line\nline\n", b"\x1fline"])
def test_bytes_come_as_they_are_with_size_and_digest(data: bytes, size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(data)
    with open_log(path) as opened:
        assert b"".join(opened.blocks(size)) == data
        assert (opened.size, opened.total) == (len(data), len(data))
        assert opened.digest == "sha256:" + hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", [1, 7, 1 << 17])
def test_gzip_of_several_members_is_read_through(size: int) -> None:
    packed = gzip.compress(b"one\n") + gzip.compress(b"") + gzip.compress(b"two\n" * 10_000) + b"\0\0\0"
    with open_log(io.BytesIO(packed)) as opened:
        assert b"".join(opened.blocks(size)) == b"one\n" + b"two\n" * 10_000
        assert opened.digest == "sha256:" + hashlib.sha256(packed).hexdigest()


def test_a_bomb_is_taken_apart_in_bounded_memory() -> None:
    packed = gzip.compress(b"\0" * (1 << 28), 9)
    tracemalloc.start()
    with open_log(io.BytesIO(packed)) as opened:
        size = sum(len(block) for block in opened.blocks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == 1 << 28
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("data", "code", "word"),
    [
        (gzip.compress(b"x" * 1000)[:-9], "malformed_gzip", "breaks off"),
        (gzip.compress(b"x" * 1000)[:-8] + b"12345678", "malformed_gzip", "incorrect data check"),
        (gzip.compress(b"x") + b"rubbish", "malformed_gzip", "incorrect header check"),
        (b"\x28\xb5\x2f\xfd....", "unreadable_log", "zstdcat"),
        (b"\xfd7zXZ\x00...", "unreadable_log", "xzcat"),
        (b"BZh91AY", "unreadable_log", "bzcat"),
        (b"PK\x03\x04..", "unreadable_log", "unzip"),
        ("line\n".encode("utf-16"), "unreadable_log", "iconv"),
    ],
)
def test_what_is_no_log_is_named_with_a_step(data: bytes, code: str, word: str) -> None:
    error = fault(io.BytesIO(data))
    assert type(error) is InputError
    assert error.issues[0].code == code
    assert word in str(error.issues[0])


def test_a_stream_of_text_is_refused() -> None:
    assert fault(io.StringIO("text")).issues[0].code == "not_binary"  # type: ignore[arg-type]


def test_a_directory_and_what_is_missing_are_refused_before_reading(tmp_path: Path) -> None:
    for path, code in ((tmp_path, "is_a_directory"), (tmp_path / "no.log", "file_read"), ("a\0b", "invalid_path")):
        assert fault(path).issues[0].code == code
        with pytest.raises(StoreError):
            check_log(path)


def test_a_pipe_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"line\n" * 100_000,))
    writer.start()
    check_log(path)
    with open_log(path) as opened:
        assert opened.total is None
        assert sum(block.count(b"\n") for block in opened.blocks()) == 100_000
    writer.join()


def test_a_file_that_grows_is_read_to_the_end_it_has_then(tmp_path: Path) -> None:
    path = tmp_path / "growing.log"
    path.write_bytes(b"1\n" * 10)
    with open_log(path) as opened:
        blocks = opened.blocks(8)
        read = next(blocks)
        with path.open("ab") as stream:
            stream.write(b"2\n")
        assert read + b"".join(blocks) == b"1\n" * 10 + b"2\n"
