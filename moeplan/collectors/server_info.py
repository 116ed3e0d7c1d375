"""What vLLM's ``GET /server_info`` (its development mode) says of sharding, precision and kernels."""

from __future__ import annotations

import json
import re
from typing import Any

from moeplan.errors import InputError, Issue

__all__ = ["read_server_info"]

_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def read_server_info(data: bytes) -> dict[str, dict[str, str]]:
    """Return facts by part and name; what it does not say, and a backend left at ``auto``, is left out.

    Source: vLLM 0.32.0, ``entrypoints/serve`` (server_info), ``config/{parallel,model,attention,kernel}.py``.

    Raises:
        InputError: not the answer of that endpoint.
    """
    try:
        config = json.loads(data)["vllm_config"]
    except (ValueError, RecursionError, KeyError, TypeError):
        config = None
    if type(config) is not dict:
        message, step = "not what /server_info answers", "ask for /server_info?config_format=json"
        raise InputError(Issue("--server-info", "not_server_info", message, "an object with vllm_config", None, step))
    parallel, model = _part(config, "parallel_config"), _part(config, "model_config")
    sharding = {name: str(parallel[name]) for name in _SIZES if type(parallel.get(name)) is int}
    if type(parallel.get("enable_expert_parallel")) is bool and {"tensor_parallel_size", "data_parallel_size"} <= set(
        sharding
    ):
        spread = parallel["tensor_parallel_size"] * parallel["data_parallel_size"]
        sharding["expert_parallel_size"] = str(spread if parallel["enable_expert_parallel"] else 1)
    quantization = model.get("quantization")
    precision = {
        "precision": _word(str(model.get("dtype", "")).removeprefix("torch.")),
        "quantization": "none" if "quantization" in model and quantization is None else _word(quantization),
        "kv_cache_precision": _word(_part(config, "cache_config").get("cache_dtype")),
    }
    backends = {
        "attention_backend": _chosen(_part(config, "attention_config").get("backend")),
        "moe_backend": _chosen(_part(config, "kernel_config").get("moe_backend")),
    }
    made = {"sharding": sharding, "precision": precision, "kernel_backend": backends}
    return {part: {name: value for name, value in facts.items() if value} for part, facts in made.items()}


def _part(config: dict[str, Any], name: str) -> dict[str, Any]:
    value = config.get(name)
    return value if type(value) is dict else {}


def _word(value: object) -> str:
    return value if type(value) is str and _WORD.fullmatch(value) else ""


def _chosen(value: object) -> str:
    word = _word(value)
    return "" if word.lower() in ("auto", "none") else word
