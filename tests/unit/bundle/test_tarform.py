"""Directory to tar and back: the same bytes whatever the owner, mode, time or order of the files."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moeplan.bundle.directory import DirectorySource
from moeplan.bundle.source import TarSource, open_source
from moeplan.bundle.tarform import pack, unpack, write_tar
from moeplan.errors import StoreError, VerificationError


def _tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _packed(root: Path) -> bytes:
    with open_source(root) as source:
        return b"".join(pack(source))


def _write(root: Path, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


@pytest.fixture
def tar(tmp_path: Path, bundle: Path) -> Path:
    with open_source(bundle) as source:
        write_tar(source, tmp_path / "bundle.tar")
    return tmp_path / "bundle.tar"


def test_the_standard_librarys_reader_sees_the_same_files(bundle: Path, tar: Path) -> None:
    with tarfile.open(tar, "r:") as opened:
        members = opened.getmembers()
        contents = {member.name: opened.extractfile(member).read() for member in members}  # type: ignore[union-attr]
    assert contents == _tree(bundle)
    assert [member.name for member in members] == sorted(contents)
    assert {(m.mode, m.uid, m.gid, m.mtime, m.uname, m.gname, m.type) for m in members} == {
        (0o644, 0, 0, 0, "", "", tarfile.REGTYPE)
    }


@pytest.mark.skipif(shutil.which("tar") is None, reason="needs GNU tar")
def test_gnu_tar_writes_the_same_bytes(tmp_path: Path, bundle: Path, tar: Path) -> None:
    if "GNU tar" not in subprocess.run(["tar", "--version"], capture_output=True, text=True, check=True).stdout:
        pytest.skip("needs GNU tar")
    options = "--format=ustar --numeric-owner --owner=0 --group=0 --mode=0644 --mtime=@0 --blocking-factor=1"
    made = subprocess.run(
        ["tar", *options.split(), "-cf", "-", "-C", bundle, *sorted(_tree(bundle))], capture_output=True, check=True
    ).stdout
    assert made == tar.read_bytes()


def test_owner_mode_time_and_order_of_creation_leave_no_trace(tmp_path: Path, bundle: Path, tar: Path) -> None:
    other = tmp_path / "other"
    _write(other, dict(reversed(_tree(bundle).items())))
    for path in other.rglob("*"):
        os.utime(path, (1, 10**9))
        path.chmod(0o700 if path.is_dir() else 0o600)
        if os.geteuid() == 0:
            os.chown(path, 1234, 5678)
    assert _packed(other) == tar.read_bytes()


def test_unpack_gives_the_directory_back(tmp_path: Path, bundle: Path, tar: Path) -> None:
    with open_source(tar) as source:
        inventory, data = unpack(source, tmp_path / "again")
    assert _tree(tmp_path / "again") == _tree(bundle)
    assert data == (bundle / "bundle.json").read_bytes()
    assert len(inventory.files) == len(_tree(bundle)) - 1
    assert _packed(tmp_path / "again") == tar.read_bytes()
    assert _packed(tar) == tar.read_bytes()


def test_attestations_travel_along(tmp_path: Path, bundle: Path) -> None:
    (bundle / "attestations").mkdir()
    (bundle / "attestations" / "index-0123456789abcdef-1.sigstore.json").write_bytes(b"{}")
    with open_source(bundle) as source:
        write_tar(source, tmp_path / "x.tar")
    with open_source(tmp_path / "x.tar") as source:
        unpack(source, tmp_path / "again")
    assert _tree(tmp_path / "again") == _tree(bundle)


def test_a_tampered_tar_is_not_unpacked(tmp_path: Path, tar: Path) -> None:
    data = tar.read_bytes()
    with tarfile.open(tar, "r:") as opened:
        places = {member.name: member.offset_data for member in opened.getmembers()}
    before = sorted(os.listdir(tmp_path))
    for name, place in places.items():
        tar.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with open_source(tar) as source, pytest.raises(VerificationError) as caught:
            unpack(source, tmp_path / "again")
        code = caught.value.issues[0].code
        assert code == "inventory_digest" or name == "bundle.json", name
        assert sorted(os.listdir(tmp_path)) == before


def test_a_flipped_bit_anywhere_in_the_tar_is_refused(tmp_path: Path, tar: Path) -> None:
    """Wherever it lies but in the inventory itself, whose bytes the index attestation vouches for."""
    data = tar.read_bytes()
    with tarfile.open(tar, "r:") as opened:
        inventory = opened.getmember("bundle.json")
    own = range(inventory.offset_data, inventory.offset_data + inventory.size)
    for place in set(range(0, len(data), 97)).difference(own):
        tar.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with pytest.raises(VerificationError), open_source(tar) as source:
            unpack(source, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_broken_bundle_is_not_packed(tmp_path: Path, bundle: Path) -> None:
    (bundle / "extra").write_bytes(b"")
    with open_source(bundle) as source, pytest.raises(VerificationError) as caught:
        write_tar(source, tmp_path / "x.tar")
    assert caught.value.issues[0].code == "inventory_extra"
    assert not (tmp_path / "x.tar").exists()


def test_a_file_that_changes_while_it_is_packed_leaves_no_tar(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(os.listdir(tmp_path))
    plain = DirectorySource.chunks
    reads: list[str] = []

    def disturbed(self: DirectorySource, path: str) -> Iterator[bytes]:
        reads.append(path)
        if reads.count(path) == 2 and path == "plan.json":
            with open(bundle / "plan.json", "ab") as stream:
                stream.write(b" ")
        return plain(self, path)

    monkeypatch.setattr(DirectorySource, "chunks", disturbed)
    with open_source(bundle) as source, pytest.raises(StoreError) as caught:
        write_tar(source, tmp_path / "x.tar")
    assert caught.value.issues[0].code == "changed_while_read"
    assert sorted(os.listdir(tmp_path)) == before


def test_open_source_picks_by_what_lies_there(tmp_path: Path, bundle: Path, tar: Path) -> None:
    with open_source(bundle) as directory, open_source(tar) as archive:
        assert (type(directory), type(archive)) == (DirectorySource, TarSource)
        assert directory.paths() == archive.paths()
        assert [directory.size(p) for p in directory.paths()] == [archive.size(p) for p in archive.paths()]
    os.mkfifo(tmp_path / "pipe")
    for name, code in (("none", "file_read"), ("pipe", "not_a_regular_file"), ("bundle.tar/x", "file_read")):
        with pytest.raises(StoreError) as caught:
            open_source(tmp_path / name)
        assert caught.value.issues[0].code == code


_PART = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
_FILES = st.dictionaries(
    st.lists(_PART, min_size=1, max_size=3).map("/".join), st.binary(max_size=1200), min_size=1, max_size=6
).filter(lambda files: not _collide(files))


def _collide(files: dict[str, bytes]) -> bool:
    names = [path.lower() for path in files]
    return len(set(names)) < len(names) or any(a.startswith(b + "/") for a in names for b in names)


@settings(max_examples=60, deadline=None)
@given(files=_FILES)
def test_pack_then_read_in_place_then_pack_is_the_identity(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        _write(root / "d", files)
        data = _packed(root / "d")
        (root / "t.tar").write_bytes(data)
        with open_source(root / "t.tar") as source:
            assert {path: source.read(path) for path in source.paths()} == files
            assert b"".join(pack(source)) == data
        blocks = sum(1 + -(-len(content) // 512) for content in files.values()) + 2
        assert len(data) == 512 * blocks
        assert hashlib.sha256(_packed(root / "t.tar")).digest() == hashlib.sha256(data).digest()
