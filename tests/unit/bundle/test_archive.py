"""The tar form, read in place: the one exact form passes, every other is refused by name."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from moeplan.bundle import archive as room
from moeplan.bundle.archive import TarSource
from moeplan.bundle.ustar import header
from moeplan.errors import StoreError, VerificationError

FILES = {"a": b"1", "b/c": b"x" * 512, "d": b"", "e": b"y" * 513}


def _block(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def _tar(files: dict[str, bytes]) -> bytes:
    """Build the form by hand, headers by the standard library's own writer."""
    made = bytearray()
    for path, data in files.items():
        made += _stdlib_header(path, len(data)) + _block(data)
    return bytes(made + bytes(1024))


def _stdlib_header(path: str, size: int, **fields: object) -> bytes:
    info = tarfile.TarInfo(path)
    info.size = size
    for name, value in fields.items():
        setattr(info, name, value)
    return _with_devices(info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict"))


def _with_devices(block: bytes) -> bytes:
    """GNU tar and POSIX write device numbers of zero where Python leaves the fields empty."""
    made = bytearray(block)
    made[329:345] = b"0000000\0" * 2
    return _summed(made)


def _summed(block: bytes | bytearray) -> bytes:
    made = bytearray(block)
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


def _open(tmp_path: Path, data: bytes) -> TarSource:
    path = tmp_path / "bundle.tar"
    path.write_bytes(data)
    return TarSource(path)


def _refused(tmp_path: Path, data: bytes) -> str:
    with pytest.raises(VerificationError) as caught:
        _open(tmp_path, data)
    assert str(caught.value).isprintable()
    return caught.value.issues[0].code


def test_reads_in_place(tmp_path: Path) -> None:
    with _open(tmp_path, _tar(FILES)) as source:
        assert source.paths() == ("a", "b/c", "d", "e")
        assert {path: source.read(path) for path in source.paths()} == FILES
        assert [source.size(path) for path in source.paths()] == [1, 512, 0, 513]
    assert os.listdir(tmp_path) == ["bundle.tar"]


@pytest.mark.parametrize("path", ["a", "x" * 100, "d/" + "x" * 99, "d" * 155 + "/" + "x" * 100, "a/b/" + "x" * 97])
@pytest.mark.parametrize("size", [0, 1, 8**11 - 1])
def test_header_is_the_standard_librarys(path: str, size: int) -> None:
    assert header(path, size) == _stdlib_header(path, size)


@pytest.mark.parametrize("path", ["x" * 101, "d" * 156 + "/x", "a/" + "x" * 101, "a/" * 80 + "x" * 100])
def test_a_path_no_header_can_hold_is_refused(path: str) -> None:
    with pytest.raises(VerificationError) as caught:
        header(path, 0)
    assert caught.value.issues[0].code == "container_path_too_long"


@pytest.mark.parametrize("size", [-1, 8**11])
def test_a_size_no_header_can_hold_is_refused(size: int) -> None:
    with pytest.raises(VerificationError) as caught:
        header("a", size)
    assert caught.value.issues[0].code == "container_too_large"


@pytest.mark.parametrize(
    "fields",
    [
        {"mtime": 1}, {"uid": 1000}, {"gid": 1}, {"uname": "root"}, {"gname": "root"}, {"mode": 0o755},
        {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, {"type": tarfile.LNKTYPE, "linkname": "a"},
        {"type": tarfile.DIRTYPE}, {"type": tarfile.CHRTYPE}, {"type": tarfile.BLKTYPE}, {"type": tarfile.FIFOTYPE},
        {"type": tarfile.AREGTYPE}, {"type": tarfile.CONTTYPE}, {"type": tarfile.XHDTYPE}, {"type": tarfile.XGLTYPE},
        {"type": tarfile.GNUTYPE_SPARSE}, {"type": tarfile.GNUTYPE_LONGNAME}, {"linkname": "a"},
    ],
)  # fmt: skip
def test_anything_but_a_plain_file_header_is_refused(tmp_path: Path, fields: dict[str, object]) -> None:
    data = _stdlib_header("a", 0, **fields) + bytes(1024)
    assert _refused(tmp_path, data) == "container_header"


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_other_tar_forms_are_refused(tmp_path: Path, form: int) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=form) as tar:
        info = tarfile.TarInfo("n" * 120)
        tar.addfile(info, io.BytesIO())
    assert _refused(tmp_path, made.getvalue()) == "container_header"


def _pax_path() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("a")
        info.pax_headers = {"path": "../../evil"}
        tar.addfile(info, io.BytesIO())
    return made.getvalue()


def test_a_pax_header_that_renames_is_refused(tmp_path: Path) -> None:
    assert _refused(tmp_path, _pax_path()) == "container_header"


def _second_split(block: bytes) -> bytes:
    """The same path a/b/c with its prefix written apart though it need not be."""
    made = bytearray(_stdlib_header("c", 0))
    made[345:348] = b"a/b"
    return _summed(made)


def _spaces_for_zeros(block: bytes) -> bytes:
    made = bytearray(block)
    made[124:136] = b"          1\0"
    return _summed(made)


def _base_256(block: bytes) -> bytes:
    made = bytearray(block)
    made[124:136] = b"\x80" + bytes(10) + b"\x01"
    return _summed(made)


def _negative(block: bytes) -> bytes:
    made = bytearray(block)
    made[124:136] = b"-0000000001\0"
    return _summed(made)


def _underscore(block: bytes) -> bytes:
    made = bytearray(block)
    made[124:136] = b"0000_000001\0"
    return _summed(made)


def _after_the_name(block: bytes) -> bytes:
    made = bytearray(block)
    made[50:54] = b"evil"
    return _summed(made)


def _tail(block: bytes) -> bytes:
    made = bytearray(block)
    made[500] = 1
    return _summed(made)


def _checksum(block: bytes) -> bytes:
    made = bytearray(block)
    made[150] ^= 1
    return bytes(made)


def _old_magic(block: bytes) -> bytes:
    made = bytearray(block)
    made[257:265] = b"ustar  \0"
    return _summed(made)


@pytest.mark.parametrize(
    "change",
    [
        _second_split,
        _spaces_for_zeros,
        _base_256,
        _negative,
        _underscore,
        _tail,
        _checksum,
        _old_magic,
    ],
)
def test_a_second_spelling_of_a_header_is_refused(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    data = change(_stdlib_header("a", 1)) + _block(b"1") + bytes(1024)
    assert _refused(tmp_path, data) == "container_header"


def test_bytes_hidden_after_the_name_are_refused(tmp_path: Path) -> None:
    data = _after_the_name(_stdlib_header("a", 1)) + _block(b"1") + bytes(1024)
    assert _refused(tmp_path, data) == "container_name"


def test_no_header_byte_can_be_flipped(tmp_path: Path) -> None:
    """512 bytes, one bit each: refused, whether or not the checksum is made to fit again."""
    plain = _stdlib_header("bb", 1)
    rest = _block(b"1") + bytes(1024)
    for place in range(512):
        made = bytearray(plain)
        made[place] ^= 0x10
        _refused(tmp_path, bytes(made) + rest)
        if place in (0, 1):  # another plain name, honestly summed, is another file; the inventory sees it
            continue
        if not 148 <= place < 156:
            _refused(tmp_path, _summed(made) + rest)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"b": b"", "a": b""}, "container_order"),
        ({"../a": b""}, "container_name"),
        ({"a/../../b": b""}, "container_name"),
        ({".hidden": b""}, "container_name"),
        ({"a b": b""}, "container_name"),
        ({"A": b"", "a": b""}, "container_collision"),
        ({"a": b"", "a/b": b""}, "container_collision"),
    ],
)
def test_names_and_order(tmp_path: Path, files: dict[str, bytes], code: str) -> None:
    assert _refused(tmp_path, _tar(files)) == code


def test_absolute_and_control_names_are_refused(tmp_path: Path) -> None:
    assert _refused(tmp_path, header("/etc/passwd", 0) + bytes(1024)) == "container_name"
    assert _refused(tmp_path, header("a\x1b[2J", 0) + bytes(1024)) == "container_name"
    latin = bytearray(_stdlib_header("a", 0))
    latin[0] = 0xFF
    assert _refused(tmp_path, _summed(latin) + bytes(1024)) == "container_header"


def test_a_file_given_twice_is_refused(tmp_path: Path) -> None:
    one = _stdlib_header("a", 1) + _block(b"1")
    assert _refused(tmp_path, one + one + bytes(1024)) == "container_order"


def test_bytes_hidden_in_the_padding_are_refused(tmp_path: Path) -> None:
    data = _stdlib_header("a", 1) + b"1" + bytes(510) + b"!" + bytes(1024)
    assert _refused(tmp_path, data) == "container_padding"


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1024, 1025, 1535])
def test_a_cut_archive_is_refused(tmp_path: Path, size: int) -> None:
    whole = _tar({"a": b"1"})
    assert len(whole) == 2048
    assert _refused(tmp_path, whole[:size]).startswith("container_")


@pytest.mark.parametrize("extra", [b"\0", bytes(512), b"x", _tar({"z": b"1"}), bytes(8192)])
def test_nothing_may_follow_the_end(tmp_path: Path, extra: bytes) -> None:
    assert _refused(tmp_path, _tar(FILES) + extra) == "container_end"


def test_one_zero_block_does_not_end_an_archive(tmp_path: Path) -> None:
    body = _tar({"a": b"1"})[:-1024]
    assert _refused(tmp_path, body + bytes(512) + _stdlib_header("b", 0)) == "container_end"
    assert _refused(tmp_path, body + bytes(512)) == "container_end"


def test_a_size_beyond_the_file_is_refused_without_reading(tmp_path: Path) -> None:
    assert _refused(tmp_path, _stdlib_header("a", 8**11 - 1) + bytes(1024)) == "container_truncated"
    assert _refused(tmp_path, _stdlib_header("a", 2048) + bytes(1024)) == "container_truncated"


def test_compressed_and_foreign_files_are_refused(tmp_path: Path) -> None:
    import gzip

    assert _refused(tmp_path, gzip.compress(_tar(FILES) + os.urandom(600))).startswith("container_")
    assert _refused(tmp_path, b'{"kind":"evidence_bundle"}\n' * 40) == "container_header"


def test_caps_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_FILES", 3)
    assert _refused(tmp_path, _tar(FILES)) == "container_too_many"
    monkeypatch.undo()
    monkeypatch.setattr(room, "MAX_TOTAL_BYTES", 1000)
    assert _refused(tmp_path, _tar(FILES)) == "container_too_large"


def test_read_is_bounded_and_knows_only_its_files(tmp_path: Path) -> None:
    with _open(tmp_path, _tar(FILES)) as source:
        with pytest.raises(VerificationError) as caught:
            source.read("e", 512)
        assert caught.value.issues[0].code == "container_too_large"
        with pytest.raises(VerificationError) as caught:
            source.read("f")
        assert caught.value.issues[0].code == "container_missing"


def test_a_change_after_opening_is_noticed(tmp_path: Path) -> None:
    source = _open(tmp_path, _tar(FILES))
    os.utime(tmp_path / "bundle.tar", ns=(1, 1))
    for look in (lambda: source.read("a"), lambda: source.__exit__(None, None, None)):
        with pytest.raises(StoreError) as caught:
            look()
        assert caught.value.issues[0].code == "changed_while_read"


def test_an_archive_cut_after_opening_is_noticed(tmp_path: Path) -> None:
    source = _open(tmp_path, _tar(FILES))
    os.truncate(tmp_path / "bundle.tar", 600)
    with pytest.raises(StoreError) as caught:
        source.read("b/c")
    assert caught.value.issues[0].code == "changed_while_read"
    with pytest.raises(RuntimeError, match="mine"), source:
        raise RuntimeError("mine")


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with _open(tmp_path, _tar(FILES)):
        pass
    _refused(tmp_path, _tar(FILES)[:-1])
    assert len(os.listdir("/proc/self/fd")) == before
