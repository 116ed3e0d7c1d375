"""Whether the GPUs together hold the model, and the host's memory what is offloaded to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moeplan_vllm.families import family_of
from moeplan_vllm.rules.derived import engine_gpus
from moeplan_vllm.rules.placing import gpus_of_node
from moeplan_vllm.rules.reading import connectors, is_set, known_text, place_of

from moeplan.errors import InputError
from moeplan.facts.judge import Hit, Rule
from moeplan.facts.launches import Scene, Subject
from moeplan.manifests.quantities import parse_bytes
from moeplan_vllm_cuda.recipes import find_variant
from moeplan_vllm_cuda.rules.derived import gpu_of

__all__ = ["fewer_than", "host_memory", "model_too_large"]

_PER_RANK = 220 * 2**30
"""Bytes that SimpleCPUOffloadConnector takes for each rank by default. Source: fact C-ENV-004."""
_OTHER_WEIGHTS = ("--quantization", "--cpu-offload-gb", "--offload-backend", "--load-format")


def model_too_large(scene: Scene) -> Iterator[Hit]:
    """C-MEM-001: what the recipe's variant needs is within the GPUs' memory together."""
    for one in scene.engines():
        found = None if one.model_name is None else find_variant(one.model_name)
        gpu, gpus = gpu_of(one), engine_gpus(one)
        if found is None or gpu is None or gpu.gigabytes is None or gpus is None:
            continue
        if any(is_set(one, f"argument {name}") for name in _OTHER_WEIGHTS):
            continue
        needed, there = found[1].least_gigabytes, gpus * gpu.gigabytes
        if needed > there:
            message = f"{found[1].model} needs {needed} GB and {gpus} {gpu.id} have {there} GB"
            yield Hit(place_of(one, "argument --tensor-parallel-size"), message, one)


def fewer_than(gpu_id: str, least: int) -> Rule:
    """Return the rule that Kimi-K3 has at least so many GPUs of a kind (C-MEM-002, C-MEM-003)."""

    def rule(scene: Scene) -> Iterator[Hit]:
        for one in scene.engines():
            gpu, gpus = gpu_of(one), engine_gpus(one)
            if gpu is None or gpu.id != gpu_id or gpus is None or gpus >= least or one.model_name is None:
                continue
            if family_of(one.model_name) == "kimi-k3":
                message = f"{gpus} {gpu_id} for {one.model_name}; {least} are the least"
                yield Hit(place_of(one, "argument --tensor-parallel-size"), message, one)

    return rule


def host_memory(scene: Scene) -> Iterator[Hit]:
    """C-ENV-004: what every rank of a node offloads is within the host's memory."""
    for one in scene.engines():
        if "SimpleCPUOffloadConnector" not in (connectors(one) or ()):
            continue
        limit, gpus, each = _host_bytes(one), gpus_of_node(one), _bytes_of_rank(one)
        if limit is not None and gpus is not None and each is not None and gpus * each > limit:
            message = f"{gpus} ranks take {gpus * each} bytes of the host's memory, which has {limit}"
            yield Hit(place_of(one, "argument --kv-transfer-config"), message, one)


def _bytes_of_rank(subject: Subject) -> int | None:
    field = "argument --kv-transfer-config kv_connector_extra_config.cpu_bytes_to_use_per_rank"
    if not is_set(subject, field):
        return _PER_RANK
    text = known_text(subject, field) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _host_bytes(subject: Subject) -> int | None:
    limit = known_text(subject, "resource memory")
    if limit is not None:
        try:
            return parse_bytes(limit)
        except InputError:
            return None
    nodes = subject.scene.site.get("nodes")
    listed = nodes if isinstance(nodes, list | tuple) else ()
    told = [node.get("hostMemoryBytes") for node in listed if isinstance(node, Mapping)]
    sizes = [size for size in told if isinstance(size, int)]
    return min(sizes) if sizes else None
