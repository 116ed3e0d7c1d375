"""The engine's arguments and environment: the profile's, the recipe's by generation, the role's, the workload's.

Each layer is added to those before it and the later value stands (fact C-GEN-001). Speculation never meets pipeline
stages (C-SPC-001, C-SPC-012), expandable segments never meet a KV connector (C-PD-006).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import attrs
from moeplan_vllm.families import find_architecture
from moeplan_vllm.memory import Settings

from moeplan.errors import InputRefusedError, Issue
from moeplan.model.plan import Plan
from moeplan.units import ceil_div
from moeplan_vllm_cuda.data import read_data
from moeplan_vllm_cuda.gpus import Gpu
from moeplan_vllm_cuda.recipes import find_variant
from moeplan_vllm_cuda.rendering.sizes import Sizes

__all__ = [
    "SPECULATION",
    "TIMEOUT",
    "Options",
    "draft_repository",
    "engine_options",
    "memory_settings",
    "ready_timeout",
    "recipe_layers",
]

SPECULATION = "--speculative-config"
TIMEOUT = "VLLM_ENGINE_READY_TIMEOUT_S"
_ALLOCATORS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_LENGTH, _SEQUENCES, _BATCHED = "--max-model-len", "--max-num-seqs", "--max-num-batched-tokens"
_SEQUENCES_STEP, _LENGTH_STEP = 8, 4096
_GENERATIONS = {"9": "hopper", "10": "blackwell", "12": "blackwell"}
"""Major compute capability → the recipes' word for it."""


@attrs.frozen
class Options:
    """Arguments (True is a flag, a mapping is JSON) and environment of one role's engine, whatever the node."""

    arguments: Mapping[str, Any]
    environment: Mapping[str, str]


@cache
def _by_recipe() -> Mapping[str, Mapping[str, Any]]:
    return {row["recipe"]: row for row in read_data("rendering/arguments.json")["recipes"]}


def _recipe_row(repository: str) -> Mapping[str, Any]:
    if repository in _by_recipe():
        return _by_recipe()[repository]
    found = find_variant(repository)
    return {} if found is None else _by_recipe().get(found[0].model, {})


def recipe_layers(repository: str, gpu: Gpu) -> Iterator[Mapping[str, Any]]:
    """Yield what a model's recipe gives on a GPU: for every GPU, for its generation, and the parsers."""
    row = _recipe_row(repository)
    generation = _GENERATIONS.get((gpu.capability or "").partition(".")[0], "")
    yield from (row[key] for key in ("base", generation) if key in row)
    yield {"arguments": row.get("parsers", {})}


def draft_repository(repository: str) -> str | None:
    """Return the hub id of the draft that the model's recipe speculates with, None where it names none."""
    draft = _recipe_row(repository).get("draft")
    return None if draft is None else str(draft["repository"])


def engine_options(
    plan: Plan, gpu: Gpu, sizes: Sizes, role: str, *, draft: str | None, ready_seconds: int | None
) -> Options:
    """Return what the engine of a role is started with, apart from its model, its sizes and its node.

    Args:
        plan: its workload decides lengths and sequences.
        gpu: what it runs on.
        sizes: of the engine.
        role: ``serve``, ``prefill`` or ``decode``.
        draft: where the draft checkpoint is mounted; None without speculation.
        ready_seconds: how long the site expects a start to take.

    Raises:
        InputRefusedError: the workload is more than the recipe's values hold, or nothing says how to speculate.
    """
    repository = plan.artifact.repository
    data, row = read_data("rendering/profiles.json"), _recipe_row(repository)
    layers = [data["engine"], *recipe_layers(repository, gpu)]
    if sizes.layout.pipeline > 1:
        layers.append(row.get("stages", {}))
    paired = data["roles"].get(role)
    if paired is not None:
        layers += [data["pair"], paired, row.get("pair", {})]
    if draft is not None:
        layers.append(_speculation(repository, row, sizes, draft))
    arguments: dict[str, Any] = {}
    environment: dict[str, str] = {}
    for layer in layers:
        arguments |= layer.get("arguments", {})
        environment |= layer.get("environment", {})
    if paired is not None:
        arguments["--kv-transfer-config"] = paired["transfer"]
        environment = {name: value for name, value in environment.items() if name not in _ALLOCATORS}
    _fit_workload(plan, sizes, arguments)
    environment[TIMEOUT] = str(ready_timeout(plan, environment.get(TIMEOUT), ready_seconds))
    return Options(arguments, environment)


def _speculation(repository: str, row: Mapping[str, Any], sizes: Sizes, draft: str) -> Mapping[str, Any]:
    if sizes.layout.pipeline > 1:
        told = "a draft together with pipeline stages, which vLLM does not run (facts C-SPC-001 and C-SPC-012)"
        step = "plan without the draft, or choose a profile without stages"
        path = "$.deployment.draftCheckpointRoot"
        raise InputRefusedError(Issue(path, "draft_with_stages", told, "no draft", next=step), source="plan")
    if "draft" not in row:
        told = f"no recipe says how {repository} speculates with a draft checkpoint"
        raise InputRefusedError(Issue("$.deployment.draftCheckpointRoot", "no_method", told, "no draft"), source="plan")
    known = row["draft"]
    config = {"method": known["configuration"]["method"], "model": draft} | known["configuration"]
    return {"arguments": known.get("arguments", {}) | {SPECULATION: config}}


def _fit_workload(plan: Plan, sizes: Sizes, arguments: dict[str, Any]) -> None:
    """Let lengths and sequences hold the workload; where the recipe gives values they stand, or the plan is refused."""
    load = plan.workload
    length, each = load.input_tokens + load.output_tokens, ceil_div(load.concurrency, sizes.layout.data)
    model = find_architecture(plan.artifact.repository)
    context = None if model is None else model.context
    _hold(arguments, _LENGTH, length, context, _LENGTH_STEP, "$.workload.inputTokens", "tokens of a request")
    _hold(arguments, _SEQUENCES, each, None, _SEQUENCES_STEP, "$.workload.concurrency", "requests of a rank")
    arguments[_BATCHED] = str(max(int(arguments[_BATCHED]), int(arguments[_SEQUENCES])))


def _hold(
    arguments: dict[str, Any], name: str, wanted: int, most: int | None, step: int, path: str, words: str
) -> None:
    given = arguments.get(name)
    limit = int(given) if given is not None else most
    if limit is not None and wanted > limit:
        origin = f"the recipe's {name}" if given is not None else "the model's context"
        told = f"{wanted} {words} are more than {origin}"
        raise InputRefusedError(Issue(path, "workload_too_large", told, f"at most {limit}", str(wanted)), source="plan")
    if given is None:
        rounded = step * ceil_div(wanted, step)
        arguments[name] = str(rounded if most is None else min(rounded, most))


def ready_timeout(plan: Plan, given: str | None, expected: int | None) -> int:
    """Return how long the engine waits for its ranks, in seconds: what is expected and a margin, never below the facts.

    Source: fact C-TIM-001, and ``rendering/profiles.json``.
    """
    data = read_data("rendering/profiles.json")["time"]
    size = plan.residency.tensor_bytes
    large = size is None or size > data["largeGigabytes"] * 10**9
    least = max(int(given or 0), data["largeSeconds"] if large else data["smallSeconds"])
    with_margin = ceil_div((expected or 0) * (100 + data["marginPercent"]), 100)
    return int(max(least, 60 * ceil_div(with_margin, 60)))


def memory_settings(plan: Plan, options: Options) -> Settings:
    """Return what the options say about memory, for the placement."""
    arguments = options.arguments
    backend = arguments.get("--moe-backend")
    return Settings(
        utilisation=Decimal(arguments["--gpu-memory-utilization"]),
        request_tokens=plan.workload.input_tokens + plan.workload.output_tokens,
        kv_dtype=arguments.get("--kv-cache-dtype", "auto"),
        batched_tokens=int(arguments[_BATCHED]),
        sequences=int(arguments[_SEQUENCES]),
        moe_backend=None if backend == "auto" else backend,
        prefix_caching="--no-enable-prefix-caching" not in arguments,
    )
