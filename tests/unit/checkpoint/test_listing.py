from __future__ import annotations

import os
from pathlib import Path

import pytest

from moeplan.checkpoint import listing
from moeplan.checkpoint.listing import list_files
from moeplan.errors import InputError, MoeplanError, StoreError


def refused(folder: Path, kind: type[MoeplanError] = StoreError) -> str:
    with pytest.raises(kind) as caught:
        list_files(folder)
    return caught.value.issues[0].code


def names(folder: Path) -> list[str]:
    return [file.name for file in list_files(folder)]


def test_names_in_code_point_order(tmp_path: Path) -> None:
    for name in ("b", "a/z", "a.x", "Z", "é", "a/b/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    assert names(tmp_path) == ["Z", "a.x", "a/b/c", "a/z", "b", "é"]
    assert [file.size for file in list_files(tmp_path)] == [1, 3, 5, 3, 1, 2]


def test_what_is_left_out_and_what_is_not(tmp_path: Path) -> None:
    for name in (".git/HEAD", ".cache/huggingface/x", ".cache/other", ".gitattributes", "sub/.git/HEAD", ".hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert names(tmp_path) == [".cache/other", ".gitattributes", ".hidden", "sub/.git/HEAD"]


def test_a_hub_snapshot_is_followed_under_the_links_names(tmp_path: Path) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs/0123").write_text("content")
    snapshot = tmp_path / "snapshots/main"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").symlink_to("../../blobs/0123")
    (file,) = list_files(snapshot)
    assert (file.name, file.size) == ("config.json", 7)


def test_a_linked_directory_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/x").write_text("x")
    (tmp_path / "top").mkdir()
    (tmp_path / "top/sub").symlink_to("../elsewhere")
    assert names(tmp_path / "top") == ["sub/x"]


@pytest.mark.parametrize("target", [".", "..", "../top"])
def test_a_directory_loop_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "top/sub").mkdir(parents=True)
    (tmp_path / "top/sub/back").symlink_to(target)
    (tmp_path / "top/top").symlink_to(".")
    assert refused(tmp_path / "top") == "link_loop"


@pytest.mark.parametrize("target", ["missing", "link"])
def test_a_link_to_nothing_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "link").symlink_to(target)
    assert refused(tmp_path) == "dangling_link"


def test_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path) == "not_a_regular_file"


def test_nothing_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "missing") == "file_read"
    assert refused(tmp_path, InputError) == "no_files"
    (tmp_path / "file").write_text("x")
    assert refused(tmp_path / "file") == "not_a_directory"


@pytest.mark.parametrize("name", [b"a\nb", b"a\\b", b"\xff", b"\x1b[31m"])
def test_names_that_no_manifest_holds(tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("x")
    with pytest.raises(InputError) as caught:
        list_files(tmp_path)
    assert caught.value.issues[0].code == "file_name"
    assert str(caught.value).isprintable()
    str(caught.value).encode("utf-8")


def test_the_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        (tmp_path / name).write_text("x")
    monkeypatch.setattr(listing, "MOST_FILES", 2)
    assert refused(tmp_path) == "too_many_files"
