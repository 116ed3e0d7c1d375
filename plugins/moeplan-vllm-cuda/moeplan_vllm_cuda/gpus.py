"""NVIDIA GPUs by the names that labels, sites and people give them."""

from __future__ import annotations

import re
from functools import cache

import attrs

from moeplan_vllm_cuda.data import read_data

__all__ = ["Gpu", "find_gpu"]


@attrs.frozen
class Gpu:
    """One kind of GPU.

    Attributes:
        id: as in moeplan's registry (``h200``).
        capability: compute capability (``9.0``); None for another vendor's.
        gigabytes: advertised memory in GB (10^9 bytes); None where no fact needs it.
    """

    id: str
    capability: str | None
    gigabytes: int | None


@cache
def find_gpu(name: str) -> Gpu | None:
    """Return the GPU that a name tells (``NVIDIA-H200``, ``8x H200``, ``h200``), or None."""
    for row in read_data("gpus.json")["gpus"]:
        if re.search(row["pattern"], name.lower()):
            return Gpu(row["id"], row.get("capability"), row.get("gb"))
    return None
