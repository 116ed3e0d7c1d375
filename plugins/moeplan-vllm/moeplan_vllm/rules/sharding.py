"""Whether ranks cut a model where it can be cut: heads, experts and dense layers by the sizes of the engine."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan.facts.judge import Hit
from moeplan.facts.launches import Scene, Subject
from moeplan.manifests.versions import parse_version
from moeplan_vllm.layout import Layout
from moeplan_vllm.rules.derived import expert_shards
from moeplan_vllm.rules.placing import gpus_of_node
from moeplan_vllm.rules.reading import count, flag, is_set, known_text, place_of

__all__ = ["cut_experts", "cut_heads", "cut_projections", "cut_shared", "kv_heads_of_context", "ranks_of_node"]

_TP = "--tensor-parallel-size"
_WHOLE_SINCE = "0.9"
"""Release from which expert parallel is known to keep FP8 experts whole.

Source: vllm-project/vllm#17569 (0.8.5 refused them) and the facts' valid layouts at 0.27.1.
"""


def _size(subject: Subject, key: str) -> int | None:
    value = None if subject.model is None else subject.model.get(key)
    return value if isinstance(value, int) and value > 0 else None


def _hit(subject: Subject, message: str, severity: str | None = None) -> Hit:
    return Hit(place_of(subject, f"argument {_TP}"), message, subject, severity)


def cut_heads(scene: Scene) -> Iterator[Hit]:
    """C-DIV-001: the tensor-parallel size divides the heads."""
    for one in scene.engines():
        heads, tensor = _size(one, "heads"), count(one, _TP, 1)
        if heads and tensor and heads % tensor:
            yield _hit(one, f"{heads} attention heads do not divide by {_TP} {tensor}")


def cut_experts(scene: Scene) -> Iterator[Hit]:
    """C-DIV-002: a rank's share of a routed expert is a multiple of the block."""
    for one in scene.engines():
        size, block, shards = _size(one, "expertIntermediate"), _size(one, "block"), expert_shards(one)
        if not size or not block or not shards:
            continue
        told = ""
        if flag(one, "--enable-expert-parallel") and _is_older(one):
            shards = count(one, _TP, 1) or 1
            told = "; releases before " + _WHOLE_SINCE + " were reported to cut them although expert parallel is on"
        if size % shards or size // shards % block:
            share = f"{size} / {shards} = {size // shards}" if size % shards == 0 else f"{size} / {shards}"
            yield _hit(one, f"a rank's share of an expert, {share}, is no multiple of the block of {block}{told}")


def _is_older(subject: Subject) -> bool:
    version = parse_version(known_text(subject, "launch version"))
    limit = parse_version(_WHOLE_SINCE)
    return version is not None and limit is not None and version < limit


def cut_projections(scene: Scene) -> Iterator[Hit]:
    """C-DIV-003: a rank's share of a dense layer is a multiple of the block."""
    for one in scene.engines():
        size, block, tensor = _size(one, "denseIntermediate"), _size(one, "block"), count(one, _TP, 1)
        if not size or not block or not tensor or not _has_dense_layers(one) or _keeps_mlp_whole(one):
            continue
        if size % tensor or size // tensor % block:
            yield _hit(one, f"a rank's share of a dense layer of {size} at {_TP} {tensor} is no multiple of {block}")


def _keeps_mlp_whole(subject: Subject) -> bool:
    """Return whether dense and shared layers stand whole on each rank: :attr:`moeplan_vllm.layout.Layout.whole_mlp`."""
    tensor, data = count(subject, _TP, 1), count(subject, "--data-parallel-size", 1)
    return Layout(tensor or 1, 1, data or 1, flag(subject, "--enable-expert-parallel") is True).whole_mlp


def _has_dense_layers(subject: Subject) -> bool:
    return bool(subject.model is not None and subject.model.get("denseLayers"))


def cut_shared(scene: Scene) -> Iterator[Hit]:
    """C-DIV-011: with expert parallel shared experts are still cut by TP; releases of DeepSeek-V4 may pad them."""
    for one in scene.engines():
        size, block, tensor = _size(one, "sharedIntermediate"), _size(one, "block"), count(one, _TP, 1)
        if not size or not block or not tensor or not flag(one, "--enable-expert-parallel"):
            continue
        if (size % tensor == 0 and size // tensor % block == 0) or _keeps_mlp_whole(one):
            continue
        severity = _padded(one)
        if severity != "none":
            share = f"{size} / {tensor}"
            yield _hit(one, f"a rank's share of the shared expert, {share}, is no multiple of {block}", severity)


def _padded(subject: Subject) -> str | None:
    """Return ``none`` where the release pads the layer, ``info`` where that is not known, None where it does not."""
    if "deepseek-v4" not in str(subject.model_name).lower():
        return None
    version, fixed = parse_version(known_text(subject, "launch version")), parse_version("0.27.1")
    if version is None or fixed is None:
        return "info"
    return "none" if version >= fixed else None


def kv_heads_of_context(scene: Scene) -> Iterator[Hit]:
    """C-DIV-006, its second half: with grouped-query attention TP exceeds the KV heads, by a whole number of DCP."""
    for one in scene.engines():
        context, tensor = count(one, "--decode-context-parallel-size", 1), count(one, _TP, 1)
        heads = _size(one, "kvHeads")
        latent = one.model is not None and one.model.get("latentAttention")
        if not context or context < 2 or not tensor or not heads or latent or tensor % context:
            continue
        if tensor <= heads or tensor // heads < context:
            message = f"--decode-context-parallel-size {context} at {_TP} {tensor} with {heads} KV heads"
            yield Hit(place_of(one, "argument --decode-context-parallel-size"), message, one)


def ranks_of_node(scene: Scene) -> Iterator[Hit]:
    """C-DIV-004: a node has a GPU for each of its ranks."""
    for one in scene.engines():
        needed, there = _local_ranks(one), gpus_of_node(one)
        if needed is not None and there is not None and needed > there:
            yield _hit(one, f"{needed} ranks on a node where the launch has {there} GPUs")


def _local_ranks(subject: Subject) -> int | None:
    """Return the ranks that this launch starts on its node; None where another executor may place them."""
    executor = known_text(subject, "argument --distributed-executor-backend")
    if executor not in (None, "mp", "uni") or is_set(subject, "argument --data-parallel-rank"):
        return None
    if known_text(subject, "argument --data-parallel-backend") == "ray" or _is_ray(subject):
        return None
    sizes = [count(subject, name, 1) for name in (_TP, "--pipeline-parallel-size", "--prefill-context-parallel-size")]
    nodes = count(subject, "--nnodes", 1)
    data = count(subject, "--data-parallel-size-local", 0) or count(subject, "--data-parallel-size", 1)
    if None in sizes or not nodes or data is None:
        return None
    world = 1
    for size in sizes:
        world *= size or 1
    if nodes > 1 and not is_set(subject, "argument --data-parallel-size-local"):
        return -(-world * data // nodes)
    return -(-world // nodes) * data


def _is_ray(subject: Subject) -> bool:
    """Return whether the launch may join a Ray cluster that its manifest or script starts."""
    script = subject.source.text
    return any(word in script for word in ("ray start", "RAY_ADDRESS", "multi-node-serving.sh", "ray.io/"))
