"""A compile cache of its own for an engine that is counted.

vLLM's key of a compiled graph does not know the probe: a graph from the cache could be one without the counter, and a
graph with the counter could end in the cache of production engines. Hence a fresh cache for each engine start.
Source: vLLM 0.32.0, ``vllm/compilation/decorators.py``, the AOT key; ``vllm/envs.py``.
"""

from __future__ import annotations

import os
import time
from collections.abc import MutableMapping
from pathlib import Path

from moeplan_vllm_probe.hooks import find

__all__ = ["own_compile_cache"]

_MARK = "MOEPLAN_PROBE_CACHE"
"""Set by the first process of an engine, so that its children know whose choice the cache is."""


def own_compile_cache(directory: Path, environment: MutableMapping[str, str] = os.environ) -> dict[str, object]:
    """Give the engine a fresh compile cache unless the user chose one; return what the record says of it."""
    if not environment.get(_MARK):
        chosen = [name for name in ("VLLM_CACHE_ROOT", "VLLM_DISABLE_COMPILE_CACHE") if environment.get(name)]
        if chosen:
            return {"choice": "user", "variables": chosen}
        environment[_MARK] = str(directory / "compile-cache" / f"{time.time_ns()}-{os.getpid()}")
        environment["VLLM_CACHE_ROOT"] = environment[_MARK]
    return {"choice": "probe", "variables": ["VLLM_CACHE_ROOT"], "taken": _taken(environment[_MARK])}


def _taken(root: str) -> bool | None:
    """Return whether vLLM sees the cache chosen here; None where it does not say."""
    seen = find("vllm.envs", "VLLM_CACHE_ROOT")
    return None if seen is None else os.path.abspath(str(seen)) == os.path.abspath(root)
