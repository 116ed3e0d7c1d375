"""The weights as loaded: SHA-256 of every tensor that a weight iterator of vLLM yields."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from moeplan_vllm_probe.faults import ProbeFault
from moeplan_vllm_probe.hooks import find, require
from moeplan_vllm_probe.record import Record

__all__ = ["DTYPES", "Hashing", "patch_iterators"]

_LOADERS = (
    "vllm.model_executor.model_loader.default_loader",
    "vllm.model_executor.model_loader.runai_streamer_loader",
)
"""Modules that take their iterators by name from ``weight_utils``; what the others yield is no checkpoint tensor."""
_NEEDED = "safetensors_weights_iterator"
_SUFFIX = "_weights_iterator"

DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float4_e2m1fn_x2": "F4",
}
"""Names of torch and of safetensors. Source: safetensors, ``bindings/python/py_src/safetensors/torch.py``."""


class Hashing:
    """The digests of one process, written as they are made.

    A tensor is hashed before the loader gets it: what is hashed is what was read, whatever is made of it later.
    """

    def __init__(self, record: Callable[[], Record]) -> None:
        """Take what opens the record: that happens with the first tensor, when the ranks are known."""
        self._open = record
        self.tensors = 0
        self.bytes = 0
        self.hash_ns = 0
        self._passes = 0

    def pass_over(self, name: str, files: list[dict[str, Any]], pairs: Iterator[tuple[str, Any]]) -> Iterator[Any]:
        """Yield the pairs of an iterator, each after its line; the pass's own line says whether it came to its end."""
        number, self._passes = self._passes, self._passes + 1
        self._open().write("pass", **{"pass": number}, iterator=name, files=files)
        before, complete = self.tensors, False
        try:
            for tensor_name, tensor in pairs:
                self._tensor(number, tensor_name, tensor)
                yield tensor_name, tensor
            complete = True
        finally:
            self._open().write("passEnd", **{"pass": number}, complete=complete, tensors=self.tensors - before)

    def _tensor(self, number: int, name: str, tensor: Any) -> None:
        started = time.perf_counter_ns()
        data = tensor_bytes(tensor)
        digest = hashlib.sha256(data).hexdigest()
        self.hash_ns += time.perf_counter_ns() - started
        self.tensors += 1
        self.bytes += data.nbytes
        torch_name = str(tensor.dtype).removeprefix("torch.")
        self._open().write(
            "tensor",
            **{"pass": number},
            name=name,
            dtype=DTYPES.get(torch_name, torch_name),
            shape=[int(size) for size in tensor.shape],
            bytes=data.nbytes,
            sha256=digest,
        )

    def close(self) -> None:
        """Write the totals once the model is loaded.

        Raises:
            ProbeFault: not one tensor passed an iterator.
        """
        self._open().write("end", tensors=self.tensors, bytes=self.bytes, passes=self._passes, hashNs=self.hash_ns)
        if not self.tensors:
            raise ProbeFault(
                "loader_bypasses_iterators",
                "the model was loaded and no tensor passed the iterators that are hashed",
                "load with --load-format auto, safetensors, fastsafetensors or runai_streamer",
            )


def tensor_bytes(tensor: Any) -> memoryview:
    """Return a tensor's elements as bytes, in the order of a safetensors file."""
    torch = require("torch")
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy()).cast("B")


def patch_iterators(hashing: Hashing) -> list[str]:
    """Put the hash into every iterator that the loaders use; return their names.

    Raises:
        ProbeFault: the loader that vLLM uses by default has no iterator of the known name.
    """
    require(_LOADERS[0], _NEEDED)
    return [f"{module}.{name}" for module in _LOADERS for name in _patch_module(find(module), hashing)]


def _patch_module(module: Any, hashing: Hashing) -> list[str]:
    names = [name for name in vars(module) if name.endswith(_SUFFIX)] if module is not None else []
    for name in names:
        setattr(module, name, _hashed(name, getattr(module, name), hashing))
    return sorted(names)


def _hashed(name: str, original: Callable[..., Any], hashing: Hashing) -> Callable[..., Iterator[Any]]:
    def iterate(*args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from hashing.pass_over(name, _files(args, kwargs), original(*args, **kwargs))

    iterate.__wrapped__ = original  # type: ignore[attr-defined]
    return iterate


def _files(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return name, without its directory, and size of the files that an iterator was given."""
    lists = [value for value in (*args, *kwargs.values()) if isinstance(value, list | tuple)]
    paths = next((found for found in lists if found and all(isinstance(path, str) for path in found)), ())
    return [{"name": os.path.basename(path), "bytes": _size(path)} for path in paths]


def _size(path: str) -> int | None:
    try:
        return os.path.getsize(path)
    except OSError:
        return None
