"""What facts as data cannot say: arithmetic over several values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moeplan_vllm.rules.reading import count, look

from moeplan.errors import InputError
from moeplan.facts.judge import Hit, Rule
from moeplan.facts.launches import Scene, Subject
from moeplan.manifests.quantities import parse_bytes

__all__ = ["GIB", "KV_SPACE", "RULES"]

GIB = 1 << 30
KV_SPACE = "VLLM_CPU_KVCACHE_SPACE"
"""Whole GiB of KV cache for each rank. Source: vLLM documentation, CPU installation, environment variables."""
_BIND = "VLLM_CPU_OMP_THREADS_BIND"


def _ranks(engine: Subject) -> int | None:
    """Return how many workers one engine starts on its node; None where that is not known."""
    tensor = count(engine, "--tensor-parallel-size", 1)
    pipeline = count(engine, "--pipeline-parallel-size", 1)
    return None if tensor is None or pipeline is None else tensor * pipeline


def _memory_bytes(engine: Subject) -> int | None:
    limit = None if engine.container is None else engine.container.limits.get("memory")
    try:
        return None if limit is None else parse_bytes(limit)
    except InputError:
        return None


def _kv_fills_memory(scene: Scene) -> Iterator[Hit]:
    for engine in scene.engines():
        space, ranks, memory = look(engine, f"environment {KV_SPACE}"), _ranks(engine), _memory_bytes(engine)
        text = str(space.value)
        if not (space.is_known and text.isascii() and text.isdigit() and len(text) < 10) or None in (ranks, memory):
            continue
        taken = int(text) * GIB * (ranks or 1)
        if memory is not None and taken >= memory:
            told = f"{KV_SPACE} is {text} GiB for each of {ranks} rank(s), and the container has {memory // GIB} GiB"
            yield Hit(space.place or engine.place(), told, engine)


def _ranks_without_cores(scene: Scene) -> Iterator[Hit]:
    for engine in scene.engines():
        bound, ranks = look(engine, f"environment {_BIND}"), _ranks(engine)
        lists = str(bound.value).split("|")
        if not bound.is_known or ranks is None or not lists[0][:1].isdigit() or len(lists) >= ranks:
            continue
        told = f"{_BIND} has {len(lists)} list(s) of cores for {ranks} ranks"
        yield Hit(bound.place or engine.place(), told, engine)


RULES: Mapping[str, Rule] = {"CPU-KV-002": _kv_fills_memory, "CPU-OMP-001": _ranks_without_cores}
"""Id of a fact → the code that judges it."""
