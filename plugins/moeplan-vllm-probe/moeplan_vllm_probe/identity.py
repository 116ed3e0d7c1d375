"""Which engine, which rank, which loader: what every header says beside its own kind."""

from __future__ import annotations

from typing import Any

from moeplan_vllm_probe.hooks import engine_version, find, is_tested
from moeplan_vllm_probe.switches import Switches

__all__ = ["identity", "loader_name", "parallel_ranks"]

_GROUPS = {
    "tensorParallel": "get_tp_group",
    "pipelineParallel": "get_pp_group",
    "dataParallel": "get_dp_group",
    "expertParallel": "get_ep_group",
}
_STATE = "vllm.distributed.parallel_state"


def identity(worker: Any, switches: Switches) -> dict[str, Any]:
    """Return the members of a header that say where its record comes from."""
    version = engine_version()
    device = getattr(worker, "device", None)
    return {
        "engine": {"name": "vllm", "version": version, "tested": is_tested(version)},
        "rank": {"global": int(getattr(worker, "rank", 0)), **parallel_ranks()},
        "device": None if device is None else str(device),
        "loader": loader_name(worker),
        "switches": switches.as_json(),
    }


def parallel_ranks() -> dict[str, dict[str, int] | None]:
    """Return rank and size in each parallel group; None for a group that the engine does not have."""
    return {name: _group(function) for name, function in _GROUPS.items()}


def _group(function: str) -> dict[str, int] | None:
    get = find(_STATE, function)
    try:
        group = get() if get is not None else None
    except (AssertionError, ValueError, RuntimeError):  # not initialised
        return None
    return None if group is None else {"rank": int(group.rank_in_group), "size": int(group.world_size)}


def loader_name(worker: Any) -> dict[str, str | None]:
    """Return the load format and the class that vLLM has for it."""
    chosen = getattr(getattr(worker, "load_config", None), "load_format", None)
    load_format = None if chosen is None else str(getattr(chosen, "value", chosen))
    classes = find("vllm.model_executor.model_loader", "_LOAD_FORMAT_TO_MODEL_LOADER") or {}
    found = classes.get(load_format)
    return {"format": load_format, "class": getattr(found, "__name__", None)}
