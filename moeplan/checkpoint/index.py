"""A sharded checkpoint's own index, compared with the headers: which tensor lies where, and how large all are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from moeplan.errors import InputError, escape
from moeplan.model.checkpoint import CheckpointIndex, Tensor
from moeplan.model.finding import Finding
from moeplan.wire.strict_json import MAX_BYTES, parse_strict

__all__ = ["INDEX_NAME", "MAX_INDEX_BYTES", "compare_index"]

INDEX_NAME = "model.safetensors.index.json"
"""The index's name. Source: transformers, ``utils/__init__.py``, ``SAFE_WEIGHTS_INDEX_NAME``."""

MAX_INDEX_BYTES = 4 * MAX_BYTES
"""Largest index read, in bytes: half a million tensors take about 60 MB."""

_MOST_FINDINGS = 100


def compare_index(data: bytes, tensors: Sequence[Tensor]) -> tuple[CheckpointIndex, tuple[Finding, ...]]:
    """Return what the index claims and every disagreement with the headers, each an error finding.

    An index that cannot be read agrees with nothing. Compared: every tensor of ``weight_map`` is in the file it names,
    no file holds a tensor that the map does not place there, and ``metadata.total_size`` is the exact sum of all
    tensors' bytes. An index without ``total_size`` is compared by its map alone, with a warning.

    Args:
        data: the index file's bytes.
        tensors: every tensor of every safetensors file of the checkpoint.
    """
    try:
        value = parse_strict(data, max_bytes=MAX_INDEX_BYTES)
    except InputError as error:
        return _unreadable(str(error.issues[0]))
    weight_map = value.get("weight_map") if type(value) is dict else None
    if type(weight_map) is not dict or any(type(file) is not str for file in weight_map.values()):
        return _unreadable("$.weight_map: expected a map from tensor name to file name")
    metadata = value.get("metadata", {})
    total = metadata.get("total_size") if type(metadata) is dict else None
    if total is not None and (type(total) is not int or total < 0):
        return _unreadable("$.metadata.total_size: expected an integer number of bytes")
    findings = [*_compare_map(weight_map, tensors), *_compare_total(total, tensors)]
    agrees = all(finding.severity != "error" for finding in findings)
    return CheckpointIndex(file=INDEX_NAME, total_size=total, agrees=agrees), _limited(findings)


def _finding(code: str, message: str, where: str = INDEX_NAME, severity: str = "error") -> Finding:
    return Finding(code=code, severity=severity, message=escape(message, 1000), where=escape(where, 400))


def _unreadable(reason: str) -> tuple[CheckpointIndex, tuple[Finding, ...]]:
    finding = _finding("index_unreadable", f"the index cannot be compared: {reason}")
    return CheckpointIndex(file=INDEX_NAME, total_size=None, agrees=False), (finding,)


def _compare_map(weight_map: dict[str, Any], tensors: Sequence[Tensor]) -> Iterable[Finding]:
    held: dict[str, list[str]] = {}
    for tensor in tensors:
        held.setdefault(tensor.name, []).append(tensor.file)
    for name, file in sorted(weight_map.items()):
        files = held.get(name, [])
        if not files:
            yield _finding("tensor_missing", f"the index places {name} in {file}; no file holds it", file)
        elif file not in files:
            message = f"the index places {name} in {file}; it is in {', '.join(files)}"
            yield _finding("tensor_in_other_file", message, file)
    for tensor in tensors:
        if tensor.name not in weight_map:
            message = f"{tensor.file} holds {tensor.name}, which the index does not list"
            yield _finding("tensor_not_in_index", message, tensor.file)
        elif tensor.file != weight_map[tensor.name] and weight_map[tensor.name] in held[tensor.name]:
            message = f"{tensor.file} holds {tensor.name} a second time; the index places it elsewhere"
            yield _finding("tensor_repeated", message, tensor.file)


def _compare_total(total: int | None, tensors: Sequence[Tensor]) -> Iterable[Finding]:
    exact = sum(tensor.bytes for tensor in tensors)
    if total is None:
        yield _finding("index_without_total_size", f"the index states no total_size; {exact} bytes", severity="warning")
    elif total != exact:
        yield _finding("total_size_differs", f"the index states {total} bytes; the headers hold {exact} bytes")


def _limited(findings: list[Finding]) -> tuple[Finding, ...]:
    if len(findings) <= _MOST_FINDINGS:
        return tuple(findings)
    rest = len(findings) - _MOST_FINDINGS
    return (*findings[:_MOST_FINDINGS], _finding("more_findings", f"and {rest} more disagreements with the index"))
