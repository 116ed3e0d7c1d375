"""The static floor in exact integers: does the checkpoint's tensor data fit at all?"""

from __future__ import annotations

from functools import lru_cache

from moeplan.errors import InputError, Issue
from moeplan.model.plan import CheckpointRef, Residency
from moeplan.model.registry import Accelerator, KnownInteger, Model
from moeplan.units import BASIS_POINTS, MAX_SAFE_INTEGER, ceil_div

__all__ = ["model_residency", "residency_of", "usable_bytes"]


def usable_bytes(device_bytes: int, reserve_basis_points: int) -> int:
    """Return the bytes of one device left after the reserve: floor(bytes × (10000 - reserve) / 10000). Exact."""
    return device_bytes * (BASIS_POINTS - reserve_basis_points) // BASIS_POINTS


def model_residency(
    model: Model,
    hardware: Accelerator,
    checkpoint: CheckpointRef | None,
    reserve_basis_points: int,
    requested: int,
    per_node: int,
) -> Residency:
    """Return the static floor of a model on an accelerator; ``checkpoint`` replaces the registry's tensor bytes.

    A checkpoint of no tensor bytes has its weights in a format that was not read: their size is unknown, not 0.
    """
    claim = model.claims.artifact_tensor_bytes
    tensor_bytes, origin = None, "unknown"
    if checkpoint is not None:
        if checkpoint.tensor_bytes > 0:
            tensor_bytes, origin = checkpoint.tensor_bytes, "checkpoint_manifest"
    elif isinstance(claim, KnownInteger):
        tensor_bytes, origin = claim.value, "registry"
    return residency_of(tensor_bytes, origin, hardware.memory_bytes, reserve_basis_points, requested, per_node)


@lru_cache(maxsize=4096)
def residency_of(
    tensor_bytes: int | None,
    tensor_bytes_from: str,
    device_bytes: int | None,
    reserve_basis_points: int,
    requested: int,
    per_node: int,
) -> Residency:
    """Return the static floor; unknown where tensor bytes or device memory are.

    Args:
        tensor_bytes: exact tensor bytes of the checkpoint, or None.
        tensor_bytes_from: ``registry``, ``checkpoint_manifest`` or ``unknown``.
        device_bytes: bytes of one device as advertised, or None.
        reserve_basis_points: share of each device held back, 0 to 9999.
        requested: accelerators asked for.
        per_node: accelerators of one node.

    Returns:
        The floor in whole accelerators, and rounded up to whole nodes. The total usable bytes are capped at 2^53 - 1,
        the largest integer a document holds; tensor bytes are under the same cap, so no comparison changes.

    Raises:
        InputError: the reserve leaves no byte of the device.
    """
    usable = None if device_bytes is None else usable_bytes(device_bytes, reserve_basis_points)
    total = None if usable is None else min(usable * requested, MAX_SAFE_INTEGER)
    if tensor_bytes is None or usable is None:
        return Residency("unknown", tensor_bytes, tensor_bytes_from, device_bytes, usable, total, None, None, None)
    if usable == 0:
        raise InputError(
            Issue("$.reserveBasisPoints", "no_usable_memory", "the reserve leaves no memory", "at least one byte left")
        )
    minimum = ceil_div(tensor_bytes, usable)
    nodes = ceil_div(minimum, per_node)
    status = "pass" if requested >= minimum else "fail"
    return Residency(
        status, tensor_bytes, tensor_bytes_from, device_bytes, usable, total, minimum, nodes * per_node, nodes
    )
