from __future__ import annotations

import io
import struct
from typing import Any

import pytest

from moeplan.checkpoint.safetensors import TensorHeader, read_header
from moeplan.errors import InputError, Issue
from moeplan.model.checkpoint import DTYPE_BITS, MAX_HEADER_BYTES
from tests.unit.checkpoint.made import TINY_MOE, entry, safetensors_bytes, second_reading


def read(data: bytes) -> tuple[TensorHeader, ...]:
    return read_header(io.BytesIO(data), len(data), "x.safetensors")


def refused(data: bytes) -> Issue:
    with pytest.raises(InputError) as caught:
        read(data)
    assert caught.value.source == "x.safetensors"
    return caught.value.issues[0]


@pytest.mark.shared
@pytest.mark.skipif(not TINY_MOE.is_dir(), reason="the shared tiny-moe checkpoint is not beside the repository")
def test_real_shards_read_the_same_a_second_way() -> None:
    shards = sorted(TINY_MOE.glob("*.safetensors"))
    assert len(shards) == 5
    for path in shards:
        with path.open("rb") as stream:
            found = read_header(stream, path.stat().st_size, path.name)
        assert {t.name: (t.dtype, t.shape, t.bytes) for t in found} == second_reading(path)


class TestAccepted:
    def test_tensors_in_name_order(self) -> None:
        header = {"z": entry("F16", [1, 2], 0, 4), "a": entry("I64", [], 4, 12), "__metadata__": {"k": "v"}}
        assert read(safetensors_bytes(header, bytes(12))) == (
            TensorHeader("a", "I64", (), 4, 12),
            TensorHeader("z", "F16", (1, 2), 0, 4),
        )

    def test_no_tensor_at_all(self) -> None:
        assert read(safetensors_bytes({}, b"")) == ()

    def test_padding_after_the_header_and_empty_tensors(self) -> None:
        header = b'{"e":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},"f":{"dtype":"U8","shape":[1],'
        header += b'"data_offsets":[0,1]}}    '
        assert [(t.name, t.bytes) for t in read(safetensors_bytes(header, b"\0"))] == [("e", 0), ("f", 1)]

    @pytest.mark.parametrize(
        ("dtype", "shape", "size"),
        [
            ("BOOL", [3], 3),
            ("F4", [2, 3], 3),
            ("F6_E2M3", [4], 3),
            ("F6_E3M2", [8], 6),
            ("U8", [3], 3),
            ("I8", [3], 3),
            ("F8_E5M2", [3], 3),
            ("F8_E4M3", [3], 3),
            ("F8_E8M0", [3], 3),
            ("F8_E4M3FNUZ", [3], 3),
            ("F8_E5M2FNUZ", [3], 3),
            ("I16", [3], 6),
            ("U16", [3], 6),
            ("F16", [3], 6),
            ("BF16", [3], 6),
            ("I32", [3], 12),
            ("U32", [3], 12),
            ("F32", [3], 12),
            ("C64", [3], 24),
            ("F64", [3], 24),
            ("I64", [3], 24),
            ("U64", [3], 24),
        ],
    )
    def test_every_dtype(self, dtype: str, shape: list[int], size: int) -> None:
        (tensor,) = read(safetensors_bytes({"t": entry(dtype, shape, 0, size)}, bytes(size)))
        assert tensor.bytes == size
        for other in (size - 1, size + 1):
            data = safetensors_bytes({"t": entry(dtype, shape, 0, other)}, bytes(other))
            assert refused(data).code == "safetensors_size"

    def test_every_dtype_is_tested(self) -> None:
        assert len(DTYPE_BITS) == 22


ONE = {"t": entry("U8", [4], 0, 4)}


class TestRefused:
    @pytest.mark.parametrize(
        ("data", "code"),
        [
            (b"", "safetensors_truncated"),
            (bytes(7), "safetensors_truncated"),
            (struct.pack("<Q", 3) + b"{}", "safetensors_truncated"),
            (struct.pack("<Q", MAX_HEADER_BYTES + 1) + b"{}", "safetensors_header_too_large"),
            (b"\xff" * 8 + b"{}", "safetensors_header_too_large"),
            (bytes(8), "safetensors_header"),
            (safetensors_bytes(b" {}", b""), "safetensors_header"),
            (safetensors_bytes(b"[]", b""), "safetensors_header"),
            (safetensors_bytes(b"{", b""), "invalid_json"),
            (safetensors_bytes(b"{}x", b""), "invalid_json"),
            (safetensors_bytes(b'{"\xff":1}', b""), "wrong_encoding"),
            (safetensors_bytes(b'{"a":' + b"[" * 100 + b"]" * 100 + b"}", b""), "too_deep"),
            (safetensors_bytes(ONE, bytes(3)), "safetensors_truncated"),
            (safetensors_bytes(ONE, bytes(5)), "safetensors_trailing"),
            (safetensors_bytes({}, bytes(1)), "safetensors_trailing"),
        ],
    )
    def test_whole_file(self, data: bytes, code: str) -> None:
        issue = refused(data)
        assert (issue.path, issue.code) == ("$", code)

    def test_file_shorter_than_its_stated_size(self) -> None:
        data = safetensors_bytes(ONE, bytes(4))
        with pytest.raises(InputError) as caught:
            read_header(io.BytesIO(data[:20]), len(data), "x")
        assert caught.value.issues[0].code == "safetensors_truncated"

    def test_duplicate_tensor(self) -> None:
        header = b'{"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"t":{"dtype":"U8","shape":[4],'
        header += b'"data_offsets":[0,4]}}'
        issue = refused(safetensors_bytes(header, bytes(4)))
        assert (issue.path, issue.code) == ("$.t", "duplicate_key")

    @pytest.mark.parametrize("metadata", [1, [], "x", {"k": 1}, {"k": None}, {"k": {}}])
    def test_metadata(self, metadata: Any) -> None:
        issue = refused(safetensors_bytes({**ONE, "__metadata__": metadata}, bytes(4)))
        assert (issue.path, issue.code) == ("$.__metadata__", "safetensors_metadata")

    @pytest.mark.parametrize(
        ("item", "code"),
        [
            (None, "safetensors_tensor"),
            ([], "safetensors_tensor"),
            ({"dtype": "U8", "shape": [4]}, "safetensors_tensor"),
            ({**entry("U8", [4], 0, 4), "strides": [1]}, "safetensors_tensor"),
            (entry("U7", [4], 0, 4), "safetensors_dtype"),
            (entry("u8", [4], 0, 4), "safetensors_dtype"),
            ({"dtype": 8, "shape": [4], "data_offsets": [0, 4]}, "safetensors_dtype"),
            ({"dtype": "U8", "shape": 4, "data_offsets": [0, 4]}, "safetensors_shape"),
            ({"dtype": "U8", "shape": [True], "data_offsets": [0, 1]}, "safetensors_shape"),
            (entry("U8", [-1, -4], 0, 4), "safetensors_shape"),
            (entry("U8", [2**52, 2**52], 0, 4), "safetensors_shape"),
            ({"dtype": "U8", "shape": [4], "data_offsets": [0]}, "safetensors_offsets"),
            ({"dtype": "U8", "shape": [4], "data_offsets": {"0": 4}}, "safetensors_offsets"),
            ({"dtype": "U8", "shape": [4], "data_offsets": ["0", "4"]}, "safetensors_offsets"),
            (entry("U8", [4], -4, 0), "safetensors_offsets"),
            (entry("U8", [4], 4, 0), "safetensors_offsets"),
            (entry("U8", [5], 0, 4), "safetensors_size"),
            (entry("F4", [9], 0, 4), "safetensors_size"),
            (entry("U8", [], 0, 4), "safetensors_size"),
        ],
    )
    def test_one_tensor(self, item: Any, code: str) -> None:
        issue = refused(safetensors_bytes({"layers.0": item}, bytes(4)))
        assert (issue.path, issue.code) == ('$["layers.0"]', code)

    def test_floats_where_integers_belong(self) -> None:
        header = b'{"t":{"dtype":"U8","shape":[4.0],"data_offsets":[0,4]}}'
        issue = refused(safetensors_bytes(header, bytes(4)))
        assert (issue.path, issue.code) == ("$.t.shape[0]", "not_an_integer")

    @pytest.mark.parametrize("name", ["", "a\n", "a\x1b[31m", "a\u202e", "n" * 1025])
    def test_tensor_names_that_no_document_holds(self, name: str) -> None:
        issue = refused(safetensors_bytes({name: ONE["t"]}, bytes(4)))
        assert issue.code == "safetensors_name"
        assert "\x1b" not in str(issue)

    def test_overlap(self) -> None:
        header = {"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 3, 7)}
        issue = refused(safetensors_bytes(header, bytes(7)))
        assert (issue.path, issue.code, issue.expected, issue.got) == ("$.b", "safetensors_overlap", "begin at 4", "3")

    def test_the_same_bytes_twice(self) -> None:
        header = {"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 0, 4)}
        assert refused(safetensors_bytes(header, bytes(4))).code == "safetensors_overlap"

    def test_an_empty_tensor_inside_another(self) -> None:
        header = {"a": entry("U8", [4], 0, 4), "b": entry("U8", [0], 2, 2)}
        assert refused(safetensors_bytes(header, bytes(4))).code == "safetensors_overlap"

    @pytest.mark.parametrize("begin", [1, 5])
    def test_hole(self, begin: int) -> None:
        header = {"a": entry("U8", [1], 0, 1), "b": entry("U8", [4], begin + 1, begin + 5)}
        if begin == 1:
            header = {"b": entry("U8", [4], 1, 5)}
        assert refused(safetensors_bytes(header, bytes(10))).code == "safetensors_hole"

    def test_git_lfs_pointer_is_named(self) -> None:
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n"
        issue = refused(pointer)
        assert issue.code == "safetensors_header_too_large"
        assert issue.next is not None
        assert "git lfs pull" in issue.next

    def test_all_faults_are_named_at_once(self) -> None:
        with pytest.raises(InputError) as caught:
            read(safetensors_bytes({"a": None, "b": entry("X", [], 0, 0)}, b""))
        assert [issue.code for issue in caught.value.issues] == ["safetensors_tensor", "safetensors_dtype"]
