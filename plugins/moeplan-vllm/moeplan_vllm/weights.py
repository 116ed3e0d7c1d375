"""Bytes of weights a rank holds: which tensors are cut, which stand whole on every rank, which are kept twice.

Rules: vLLM 0.32.0, paths below ``vllm/model_executor``: ``layers/linear.py`` (column- and row-parallel, one key and
value head a rank at least), ``layers/vocab_parallel_embedding.py`` (vocabulary rounded up to 64),
``models/deepseek_v2.py`` (the low-rank projections and the indexer stand whole), ``layers/attention/mla_attention.py``
(two 16-bit copies of the key and value up-projection after loading).
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from moeplan.units import ceil_div
from moeplan_vllm.formats import matrix_bytes
from moeplan_vllm.layout import Layout
from moeplan_vllm.models import Experts, LinearAttention, Mla, Model

__all__ = ["Padding", "Part", "checkpoint_bytes", "draft_layer_bytes", "missing_sizes", "stage_parts"]


@attrs.frozen
class Padding:
    """To which multiples a kernel rounds an expert's intermediate size on a rank and its hidden size; 1 is none."""

    intermediate: int = 1
    hidden: int = 1


@attrs.frozen
class Part:
    """Bytes of one kind of tensor on one rank.

    Attributes:
        name: the kind.
        size: bytes after loading.
        whole: whether it stands alike on every tensor-parallel rank.
        stored: bytes of it in the checkpoint, where these are others; 0 for what is made while loading.
    """

    name: str
    size: int
    whole: bool = False
    stored: int | None = None

    @property
    def in_checkpoint(self) -> int:
        """Return its bytes in the checkpoint."""
        return self.size if self.stored is None else self.stored


def stage_parts(model: Model, layout: Layout, stage: range, padding: Padding) -> Iterator[Part]:
    """Yield the parts on the fullest rank of a pipeline stage. Exact for the rule.

    The model has a rule, formats and the sizes that the rule needs; :func:`missing_sizes` says which it lacks.
    """
    indexers = model.indexer.layers or 0 if model.indexer is not None else 0
    for layer in stage:
        yield from _attention(model, layout.tensor, layer, indexed=layer < indexers)
        yield from _mlp(model, layout, layer, padding)
        yield Part("norms", 2 * 2 * _need(model.hidden_size), whole=True)
    layers = _need(model.layers)
    embedding = matrix_bytes("bf16", _vocabulary_rows(model, layout), _need(model.hidden_size))
    if stage.start == 0 or (model.tied_embeddings and stage.stop == layers):
        yield Part("embedding", embedding)
    if stage.stop == layers:
        yield Part("norms", 2 * _need(model.hidden_size), whole=True)
        if not model.tied_embeddings:
            form = _form(model, "head", "bf16")
            yield Part("head", matrix_bytes(form, _vocabulary_rows(model, layout), _need(model.hidden_size)))


def checkpoint_bytes(model: Model) -> int:
    """Return the bytes the rule gives for all tensors of the text model and its own draft layers, as stored."""
    one, none, layers = Layout(), Padding(), _need(model.layers)
    total = sum(part.in_checkpoint for part in stage_parts(model, one, range(layers), none))
    unpadded = _need(model.vocabulary) - _vocabulary_rows(model, one)
    total += (1 if model.tied_embeddings else 2) * 2 * unpadded * _need(model.hidden_size)
    return total + model.next_token_layers * sum(part.in_checkpoint for part in _draft_parts(model, one, none))


def draft_layer_bytes(model: Model, layout: Layout, padding: Padding) -> int:
    """Return the bytes on a rank of one of the model's own draft layers (MTP): a layer and its input projection."""
    return sum(part.size for part in _draft_parts(model, layout, padding))


def _draft_parts(model: Model, layout: Layout, padding: Padding) -> Iterator[Part]:
    last, hidden = _need(model.layers) - 1, _need(model.hidden_size)
    yield from _attention(model, layout.tensor, last, indexed=True)
    yield from _mlp(model, layout, last, padding)
    yield Part("draft projection", matrix_bytes("bf16", hidden, 2 * hidden) + 2 * 5 * hidden, whole=True)


def missing_sizes(model: Model) -> tuple[str, ...]:
    """Return the names of what the rule for weights needs and the model's sources do not say."""
    needed: dict[str, object] = {
        "a rule for this architecture": model.rule,
        "how its weights are stored": model.formats,
        "hidden size": model.hidden_size,
        "layers": model.layers,
        "heads": model.heads,
        "vocabulary": model.vocabulary,
    }
    if model.mla is None:
        needed |= {"key and value heads": model.kv_heads, "head size": model.head_dim}
    if model.rule in ("kda", "gdn"):
        needed["linear attention"] = model.linear
    if model.experts is not None:
        needed["experts' intermediate size"] = model.experts.intermediate
        needed["how experts are stored"] = (model.formats or {}).get("experts")
    if model.experts is not None and model.experts.shared_intermediate:
        needed["how shared experts are stored"] = (model.formats or {}).get("shared")
    if model.experts is None or model.experts.dense_layers:
        needed["intermediate size"] = model.dense_intermediate
        needed["how dense layers are stored"] = (model.formats or {}).get("dense")
    return tuple(name for name, value in needed.items() if value is None)


def _need(value: int | None) -> int:
    if value is None:
        raise ValueError("a size that missing_sizes names")
    return value


def _form(model: Model, part: str, otherwise: str | None = None) -> str:
    """Return how a part is stored; only the head and the output projection may be left out of ``formats``."""
    form = (model.formats or {}).get(part, otherwise)
    if form is None:
        raise ValueError("a format that missing_sizes names")
    return form


def _vocabulary_rows(model: Model, layout: Layout) -> int:
    return ceil_div(ceil_div(_need(model.vocabulary), 64) * 64, layout.tensor)


def _attention(model: Model, tensor: int, layer: int, *, indexed: bool) -> Iterator[Part]:
    if model.linear is not None and layer not in model.full_layers:
        yield from _kda(model, model.linear, tensor) if model.rule == "kda" else _gdn(model, model.linear, tensor)
    elif model.mla is not None:
        yield from _latent(model, model.mla, tensor)
        if indexed:
            yield from _indexer(model, model.mla)
    else:
        yield from _grouped(model, tensor)


def _grouped(model: Model, tensor: int) -> Iterator[Part]:
    form, hidden, size = _form(model, "attention"), _need(model.hidden_size), _need(model.head_dim)
    heads, pairs = ceil_div(_need(model.heads), tensor), ceil_div(_need(model.kv_heads), tensor)
    queries = heads * size * (2 if model.output_gate else 1)
    yield Part("attention", matrix_bytes(form, queries, hidden) + matrix_bytes(form, 2 * pairs * size, hidden))
    yield Part("attention", matrix_bytes(_form(model, "output", form), hidden, heads * size))
    match model.model_type:
        case "minimax_m2":
            yield Part("norms", 2 * (heads + pairs) * size)
        case "gpt_oss":
            yield Part("attention", 2 * (queries + 2 * pairs * size + heads))
            yield Part("norms", 2 * hidden, whole=True)
        case "qwen2_moe":
            yield Part("attention", 2 * (queries + 2 * pairs * size))
        case "llama" | "mixtral":
            pass
        case _:
            yield Part("norms", 2 * 2 * size, whole=True)


def _latent(model: Model, mla: Mla, tensor: int) -> Iterator[Part]:
    form, hidden = _form(model, "attention"), _need(model.hidden_size)
    heads = ceil_div(_need(model.heads), tensor)
    down = mla.latent if mla.query_rank is None else mla.latent + mla.query_rank
    yield Part("low-rank projections", matrix_bytes(form, down, hidden), whole=True)
    yield Part("norms", 2 * (down - mla.rope), whole=True)
    yield Part("attention", matrix_bytes(form, heads * (mla.nope + mla.rope), mla.query_rank or hidden))
    yield Part("attention", matrix_bytes(form, heads * (mla.nope + mla.value), mla.kv_rank))
    yield Part("attention", matrix_bytes(_form(model, "output", form), hidden, heads * mla.value))
    if mla.output_gate:
        yield Part("attention", matrix_bytes(form, heads * mla.value, hidden))
    yield Part("latent copies", matrix_bytes("bf16", heads * (mla.nope + mla.value), mla.kv_rank), stored=0)


def _indexer(model: Model, mla: Mla) -> Iterator[Part]:
    if model.indexer is None:
        return
    form, hidden, index = _form(model, "attention"), _need(model.hidden_size), model.indexer
    size = matrix_bytes(form, index.heads * index.dim, mla.query_rank or hidden)
    size += matrix_bytes(form, index.dim, hidden) + matrix_bytes("bf16", index.heads, hidden) + 2 * 4 * index.dim
    # The norm of the indexer's keys is stored in 16 bits and held in 32.
    yield Part("indexer", size, whole=True, stored=size - 2 * 2 * index.dim)


def _kda(model: Model, linear: LinearAttention, tensor: int) -> Iterator[Part]:
    form, hidden = _form(model, "attention"), _need(model.hidden_size)
    heads = ceil_div(linear.value_heads, tensor)
    size, rank = heads * linear.value_dim, linear.value_dim
    inputs = (4 if linear.full_rank_gate else 3) * size + heads
    yield Part("linear attention", matrix_bytes(form, inputs, hidden) + matrix_bytes(form, hidden, size))
    low = rank if linear.full_rank_gate else 2 * rank
    yield Part("low-rank projections", matrix_bytes(form, low, hidden), whole=True)
    yield Part("linear attention", matrix_bytes(form, (1 if linear.full_rank_gate else 2) * size, rank))
    yield Part("linear attention", 4 * (3 * size * linear.kernel + size + heads))
    yield Part("norms", 2 * rank, whole=True)


def _gdn(model: Model, linear: LinearAttention, tensor: int) -> Iterator[Part]:
    form, hidden = _form(model, "attention"), _need(model.hidden_size)
    keys = ceil_div(linear.key_heads, tensor) * linear.key_dim
    heads = ceil_div(linear.value_heads, tensor)
    values = heads * linear.value_dim
    yield Part("linear attention", matrix_bytes(form, 2 * keys + 2 * values, hidden))
    yield Part("linear attention", matrix_bytes("bf16", 2 * heads, hidden) + matrix_bytes(form, hidden, values))
    yield Part("linear attention", 2 * (2 * keys + values) * linear.kernel + 2 * 4 * heads)
    yield Part("norms", 4 * linear.value_dim, whole=True)


def _mlp(model: Model, layout: Layout, layer: int, padding: Padding) -> Iterator[Part]:
    experts = model.experts
    if experts is not None and layer >= experts.dense_layers:
        yield from _experts(model, experts, layout, padding)
        return
    yield _gated("dense MLP", model, "dense", _need(model.dense_intermediate), layout)


def _gated(name: str, model: Model, part: str, intermediate: int, layout: Layout) -> Part:
    form, hidden = _form(model, part), _need(model.hidden_size)
    cut = intermediate if layout.whole_mlp else ceil_div(intermediate, layout.tensor)
    size = matrix_bytes(form, 2 * cut, hidden) + matrix_bytes(form, hidden, cut)
    return Part(name, size, whole=layout.whole_mlp)


def _experts(model: Model, experts: Experts, layout: Layout, padding: Padding) -> Iterator[Part]:
    hidden, form = _need(model.hidden_size), _form(model, "experts")
    router = model.router_format or ("fp32" if model.rule == "mla" else "bf16")
    bias = 4 * experts.routed if model.mla is not None or model.model_type == "minimax_m2" else 0
    size, stored = (matrix_bytes(form, experts.routed, hidden) + bias for form in (router, "bf16"))
    yield Part("router", size, whole=True, stored=stored)
    if experts.shared_intermediate:
        yield _gated("shared experts", model, "shared", experts.shared_intermediate, layout)
        if not experts.shared:
            yield Part("router", 2 * hidden, whole=True)
    if experts.latent is not None:
        yield Part("latent projections", 2 * matrix_bytes("bf16", experts.latent, hidden), whole=True)
    width = _round_up(ceil_div(_need(experts.intermediate), layout.expert_shards), padding.intermediate)
    depth = _round_up(experts.latent or hidden, padding.hidden)
    one = matrix_bytes(form, 2 * width, depth) + matrix_bytes(form, depth, width)
    if model.model_type == "gpt_oss":
        one += 2 * (2 * width + depth)
    yield Part("routed experts", layout.experts_held(experts.routed) * one)


def _round_up(value: int, multiple: int) -> int:
    return ceil_div(value, multiple) * multiple
