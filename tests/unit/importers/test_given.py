"""Files that stay where they lie: the same answers as in memory, and refused once they change."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from moeplan.errors import StoreError
from moeplan.importers.given import GivenFile, PiecedFile, StoredFile, chunks_of

DATA = bytes(range(256)) * 5000


def test_a_stored_file_gives_what_a_file_in_memory_gives(tmp_path: Path) -> None:
    path = tmp_path / "tool.json"
    path.write_bytes(DATA)
    stored, held = StoredFile(str(path), len(DATA)), GivenFile("tool.json", DATA)
    wanted = "sha256:" + hashlib.sha256(DATA).hexdigest()
    for file in (stored, held):
        assert (file.name, file.size, file.digest, file.data) == ("tool.json", len(DATA), wanted, DATA)
        assert b"".join(chunks_of(file.content())) == DATA
        with file.opened() as first, file.opened() as second:
            assert first.read(3) == second.read(3) == DATA[:3]
    assert stored.content() is stored
    assert len(list(chunks_of(stored))) == 2


def test_a_file_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    pieced, held = PiecedFile("t", [DATA[:7], b"", DATA[7:]]), GivenFile("t", DATA)
    assert (pieced.name, pieced.size, pieced.digest, pieced.data) == ("t", len(DATA), held.digest, DATA)
    assert pieced.content() == DATA
    with pieced.opened() as stream:
        assert stream.read() == DATA
    monkeypatch.setattr("moeplan.importers.given._LARGE", len(DATA) - 1)
    assert pieced.content() is pieced
    assert list(chunks_of(pieced)) == [DATA[:7], b"", DATA[7:]]


def test_a_file_too_large_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "tool.json"
    path.write_bytes(DATA)
    with pytest.raises(StoreError) as caught:
        StoredFile(str(path), len(DATA) - 1)
    assert caught.value.issues[0].code == "too_large"
    with pytest.raises(StoreError) as caught:
        StoredFile(str(tmp_path / "none"), 1)
    assert caught.value.issues[0].code == "file_read"


def test_a_file_that_changed_between_two_readings(tmp_path: Path) -> None:
    path = tmp_path / "tool.json"
    path.write_bytes(DATA)
    stored = StoredFile(str(path), len(DATA))
    assert stored.digest
    path.write_bytes(DATA[:-1] + b"x")
    with pytest.raises(StoreError) as caught:
        _ = stored.data
    assert caught.value.issues[0].code == "changed_while_read"
