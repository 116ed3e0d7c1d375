"""The first placement: what a rank holds, what is left for the cache, how many requests that is.

Every figure says how surely it is known and by which rule. What is not known has no value and says why; where a rule
leaves a choice, the dearer one is taken.
"""

from __future__ import annotations

import attrs

from moeplan.model.placement import Figure, RolePlacement
from moeplan.model.plugin import FactSource
from moeplan.units import ceil_div
from moeplan_vllm.devices import Device, padding_of
from moeplan_vllm.kv import Cache, Unknown, cache_of
from moeplan_vllm.layout import Layout
from moeplan_vllm.memory import Settings, batched_tokens, device_memory, overhead_of, unknown
from moeplan_vllm.models import Model
from moeplan_vllm.weights import Padding, checkpoint_bytes, draft_layer_bytes, missing_sizes, stage_parts

__all__ = ["Placed", "Settings", "place", "replicated_parts", "unplaced", "weights_per_rank"]

_RULES = FactSource("vLLM 0.32.0 source", "model_executor/layers, model_executor/models")
_CACHE = FactSource("vLLM 0.32.0 source", "v1/kv_cache_interface.py, v1/core/kv_cache_utils.py")


@attrs.frozen
class Placed:
    """A role's figures, and beside them what the engine takes besides weights and cache and what fits without that.

    ``most_requests`` is an upper bound: nothing is taken off for activations, graphs and communication. A workload
    above it cannot run; one below it may not.
    """

    role: RolePlacement
    overhead: Figure
    most_requests: Figure


def place(model: Model, layout: Layout, device: Device | None, settings: Settings, role: str = "serve") -> Placed:
    """Return where an engine puts a model; see :class:`moeplan.model.placement.RolePlacement` for the figures.

    Cache figures are of one data-parallel rank; ``concurrent_requests`` and ``most_requests`` of the whole engine.

    Args:
        model: the model.
        layout: the engine's sizes.
        device: the accelerator; None where its memory has not been seen in a log.
        settings: what the arguments say.
        role: the role's name.

    Raises:
        KeyError: ``settings.moe_backend`` is none that is known.
    """
    weights = weights_per_rank(model, layout, device, settings.moe_backend)
    draft = _draft(model, layout, device, settings)
    total, budget = device_memory(device, settings.utilisation)
    overhead = overhead_of(model, layout, device, settings)
    caches = _caches(model, layout, device, settings)
    per_token = _per_token(caches, model, settings)
    free = _left(budget, weights, draft)
    steps = batched_tokens(device, settings)
    most_tokens, most = _fits(caches, free, layout, settings.request_tokens, steps)
    tokens, requests = most_tokens, most
    if overhead.value is not None:
        tokens, requests = _fits(caches, _left(free, overhead), layout, settings.request_tokens, steps)
    made = RolePlacement(
        role=role,
        ranks=layout.ranks,
        weight_bytes=weights,
        draft_bytes=draft,
        device_bytes=total,
        budget_bytes=budget,
        kv_bytes_per_token=per_token,
        kv_tokens=tokens,
        concurrent_requests=requests,
        replicated=replicated_parts(model, layout),
    )
    return Placed(made, overhead, most)


def unplaced(role: str, ranks: int, reason: str) -> RolePlacement:
    """Return a role's placement of which nothing is known, and why."""
    figure = unknown(reason)
    return RolePlacement(
        role=role,
        ranks=ranks,
        weight_bytes=figure,
        draft_bytes=figure,
        device_bytes=figure,
        budget_bytes=figure,
        kv_bytes_per_token=figure,
        kv_tokens=figure,
        concurrent_requests=figure,
    )


def weights_per_rank(model: Model, layout: Layout, device: Device | None, moe_backend: str | None = None) -> Figure:
    """Return the bytes of weights on the fullest rank after loading, the draft apart."""
    lacking = missing_sizes(model)
    if lacking:
        return unknown(f"weights of {model.repository}: its sources do not say {', '.join(lacking)}")
    if layout.pipeline > (model.layers or 0):
        return unknown(f"{layout.pipeline} pipeline stages for {model.layers} layers")
    padding, notes = _padding(model, device, moe_backend)
    size = max(sum(p.size for p in stage_parts(model, layout, s, padding)) for s in _stages(model, layout))
    rest, note = _rest(model)
    notes += note
    said = f"tensors of {model.repository} over {_shown(layout)}, the fullest rank"
    certainty = "estimated" if notes else "calculated"
    return Figure(size + rest, certainty, "; ".join((said, *notes)), (_RULES, *_model_sources(model)))


def replicated_parts(model: Model, layout: Layout) -> tuple[str, ...]:
    """Return the kinds of tensors that stand whole on every tensor-parallel rank; none where the rule is not known."""
    if missing_sizes(model) or layout.tensor == 1 or layout.pipeline > (model.layers or 0):
        return ()
    parts = [part for stage in _stages(model, layout) for part in stage_parts(model, layout, stage, Padding())]
    names = {part.name for part in parts if part.whole}
    if model.mla is not None:
        names.add("latent cache")
    if model.kv_heads is not None and layout.tensor > model.kv_heads:
        names.add("key and value heads")
    return tuple(sorted(names))


def _stages(model: Model, layout: Layout) -> tuple[range, ...]:
    return layout.stages(model.layers or 0)


def _shown(layout: Layout) -> str:
    experts = "experts whole" if layout.expert else "experts cut"
    return f"TP {layout.tensor}, PP {layout.pipeline}, DP {layout.data}, {experts}"


def _model_sources(model: Model) -> tuple[FactSource, ...]:
    return tuple(FactSource(source) for source in model.sources[:2])


def _padding(model: Model, device: Device | None, backend: str | None) -> tuple[Padding, tuple[str, ...]]:
    form = (model.formats or {}).get("experts")
    if device is None:
        return Padding(), ("kernels of this accelerator may round experts up",) if form == "mxfp4" else ()
    padding, known = padding_of(form, device, backend)
    notes: tuple[str, ...] = ()
    if not known:
        notes = ("the experts' kernel is not stated, the widest rounding of the vendor is taken",)
    if device.vendor == "amd" and form == "bf16":
        notes += ("16-bit experts on AMD have been seen to load up to 36 % more than this",)
    return padding, notes


def _rest(model: Model) -> tuple[int, tuple[str, ...]]:
    """Return the tensor bytes the rule does not describe, such as a vision tower's, counted on every rank."""
    if not model.vision:
        return 0, ()
    if model.tensor_bytes is None:
        return 0, ("without the vision tower, whose bytes are in no source",)
    return max(0, model.tensor_bytes - checkpoint_bytes(model)), ()


def _draft(model: Model, layout: Layout, device: Device | None, settings: Settings) -> Figure:
    if settings.draft_bytes is not None:
        said = "all tensors of the draft checkpoint on every rank: the most it can be"
        return Figure(settings.draft_bytes, "estimated", said)
    if not settings.own_draft:
        return Figure(0, "calculated", "no draft")
    if not model.next_token_layers or missing_sizes(model):
        return unknown(f"no rule for the own draft layers of {model.repository}")
    padding, _ = _padding(model, device, settings.moe_backend)
    size = model.next_token_layers * draft_layer_bytes(model, layout, padding)
    tables = 4 * ceil_div((model.vocabulary or 0) + 63, layout.tensor) * (model.hidden_size or 0)
    return Figure(size + tables, "estimated", "own draft layers with an embedding and a head of their own", (_RULES,))


def _caches(model: Model, layout: Layout, device: Device | None, settings: Settings) -> tuple[Cache, ...] | Unknown:
    if model.layers is None:
        return Unknown(f"layers of {model.repository} are in no source")
    if layout.pipeline > model.layers:
        return Unknown(f"{layout.pipeline} pipeline stages for {model.layers} layers")
    vendor = device.vendor if device is not None else "nvidia"
    made: list[Cache] = []
    for stage in _stages(model, layout):
        cache = cache_of(
            model, layout.tensor, stage, settings.kv_dtype, vendor=vendor, prefix_caching=settings.prefix_caching
        )
        if isinstance(cache, Unknown):
            return cache
        made.append(cache)
    return tuple(made)


def _per_token(caches: tuple[Cache, ...] | Unknown, model: Model, settings: Settings) -> Figure:
    if isinstance(caches, Unknown):
        return unknown(caches.reason)
    size = max(cache.bytes_per_token for cache in caches)
    states = any(cache.layers.get("linear") for cache in caches)
    said = "of the layers whose cache grows with every token, on one rank of the fullest stage"
    said += "; states of the others come on top" if states else ""
    if settings.kv_dtype == "auto" and model.quantisation.get("kvCache"):
        said += "; 16 bits, though the checkpoint names a narrower cache that some releases take for auto"
        return Figure(size, "estimated", said, (_CACHE,))
    return Figure(size, "calculated", said, (_CACHE,))


def _left(whole: Figure, *parts: Figure) -> Figure:
    """Return what is left of a figure, never below zero; as sure as the least sure of them."""
    figures = (whole, *parts)
    for figure in figures:
        if figure.value is None:
            return unknown(figure.statement)
    left = (whole.value or 0) - sum(part.value or 0 for part in parts)
    certainty = "estimated" if any(figure.certainty == "estimated" for figure in figures) else "calculated"
    taken = "" if len(parts) == 1 else ", nothing taken off for activations, graphs and communication"
    return Figure(max(0, left), certainty, f"in what is left for the cache{taken}")


def _fits(
    caches: tuple[Cache, ...] | Unknown, free: Figure, layout: Layout, length: int, in_flight: int
) -> tuple[Figure, Figure]:
    """Return tokens of one data-parallel rank's pool and requests of the engine; the fullest stage sets both."""
    if isinstance(caches, Unknown):
        return unknown(caches.reason), unknown(caches.reason)
    if free.value is None:
        return unknown(free.statement), unknown(free.statement)
    tokens = min(cache.tokens(free.value, length, in_flight) for cache in caches)
    requests = min(cache.requests(free.value, length, in_flight) for cache in caches)
    said = f"requests of {length} tokens {free.statement}"
    pool = Figure(tokens, free.certainty, f"{said}; one data-parallel rank", (_CACHE,))
    whole = Figure(int(requests * layout.data), free.certainty, f"{said}; all data-parallel ranks", (_CACHE,))
    return pool, whole
