"""A manifest's inventory must explain its files: the root covers files, not what is said of the tensors in them."""

from __future__ import annotations

import attrs
import pytest

from moeplan.model.checkpoint import METADATA_BYTES, CheckpointFile, CheckpointManifest, Tensor, root_digest
from tests.build import digest_of

NAME = "model-00001-of-00001.safetensors"


def manifest(size: int, *tensors: Tensor, name: str = NAME) -> CheckpointManifest:
    files = (CheckpointFile(name, size, digest_of("content")),)
    total = sum(tensor.bytes for tensor in tensors)
    return CheckpointManifest(
        repository=None,
        revision=None,
        root=root_digest(files),
        tensor_bytes=total,
        index=None,
        files=files,
        tensors=tensors,
    )


def tensor(bytes_: int, name: str = "w") -> Tensor:
    return Tensor(name, NAME, "BF16", (bytes_ // 2,), bytes_)


def codes(made: CheckpointManifest) -> list[tuple[str, str]]:
    return [(issue.code, issue.path) for issue in made.faults()]


# A header of 64 bytes around one tensor of 4 GiB: 8 + 64 + 4294967296.
WHOLE = manifest(8 + 64 + 4_294_967_296, tensor(4_294_967_296))


def test_a_file_of_header_and_tensors_is_explained() -> None:
    assert codes(WHOLE) == []


def test_tensors_left_out_are_noticed() -> None:
    hidden = attrs.evolve(WHOLE, tensors=(), tensor_bytes=0)
    assert hidden.root == WHOLE.root
    assert codes(hidden) == [("tensors_do_not_fill_file", "$.files[0].size")]


def test_tensors_made_smaller_are_noticed() -> None:
    smaller = attrs.evolve(WHOLE, tensors=(tensor(2_147_483_648),), tensor_bytes=2_147_483_648)
    assert codes(smaller) == [("tensors_do_not_fill_file", "$.files[0].size")]


def test_tensors_beyond_the_file_are_noticed() -> None:
    assert codes(manifest(8 + 2 + 99, tensor(100))) == [("tensors_do_not_fill_file", "$.files[0].size")]
    assert codes(manifest(8 + 2 + 100, tensor(100))) == []


@pytest.mark.parametrize(("extra", "faults"), [(0, 0), (METADATA_BYTES, 0), (2 * METADATA_BYTES, 1)])
def test_metadata_has_a_bound(extra: int, faults: int) -> None:
    assert len(codes(manifest(8 + 64 + 100 + extra, tensor(100)))) == faults


def test_other_files_hold_no_tensors() -> None:
    assert codes(manifest(10**12, name="pytorch_model.bin")) == []


def test_a_tensors_size_is_that_of_dtype_and_shape() -> None:
    wrong = attrs.evolve(tensor(100), shape=(49,))
    assert codes(manifest(8 + 64 + 100, wrong)) == [("wrong_tensor_size", "$.tensors[0].bytes")]
    packed = Tensor("w", NAME, "F4", (200,), 100)
    assert codes(manifest(8 + 64 + 100, packed)) == []


def test_an_unknown_dtype_is_named() -> None:
    assert codes(manifest(8 + 64 + 100, attrs.evolve(tensor(100), dtype="Q9"))) == [
        ("unknown_dtype", "$.tensors[0].dtype")
    ]


def test_a_header_is_no_longer_than_the_format_allows() -> None:
    many = Tensor("w", NAME, "U8", (1,) * 5_000_000 + (100,), 100)
    assert codes(manifest(8 + 100 + 100_000_000, many)) == []
    assert codes(manifest(8 + 100 + 100_000_001, many)) == [("tensors_do_not_fill_file", "$.files[0].size")]
