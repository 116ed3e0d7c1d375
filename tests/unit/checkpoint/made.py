"""Small checkpoints written byte by byte, and a second reading of safetensors: struct and json alone."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

TINY_MOE = Path(__file__).resolve().parents[3].parent / "shared/samples/made/tiny-moe"


def safetensors_bytes(header: Any, data: bytes) -> bytes:
    """Return a safetensors file; ``header`` is JSON text as bytes, or a value to write as JSON."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def small_checkpoint(folder: Path) -> Path:
    """Write two shards (tensors a and b in the first, c in the second), an index, a config; 8 + 4 + 6 tensor bytes."""
    folder.mkdir()
    first = {"a": entry("F32", [2], 0, 8), "b": entry("BF16", [2, 1], 8, 12), "__metadata__": {"format": "pt"}}
    (folder / "one.safetensors").write_bytes(safetensors_bytes(first, bytes(range(12))))
    (folder / "two.safetensors").write_bytes(safetensors_bytes({"c": entry("U8", [6], 0, 6)}, b"\1" * 6))
    write_index(folder)
    (folder / "config.json").write_text("{}\n")
    return folder


def write_index(folder: Path, total_size: Any = 18, **placed: str) -> None:
    weight_map = {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors", **placed}
    text = json.dumps({"metadata": {"total_size": total_size}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(text)


def second_reading(path: Path) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Return dtype, shape and bytes of each tensor, read without the code under test."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {
        name: (item["dtype"], tuple(item["shape"]), item["data_offsets"][1] - item["data_offsets"][0])
        for name, item in header.items()
    }
