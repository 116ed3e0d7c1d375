"""Bytes of the key-value cache: per token, per request, and how many requests a pool of blocks holds.

Source: vLLM 0.32.0 ``v1/kv_cache_interface.py`` (bytes of a page), ``v1/core/kv_cache_utils.py`` (groups of layers,
one pool of equal pages, blocks a request needs), ``platforms/interface.py`` (the block grows until a page of attention
holds a state); latent attention keeps one vector a token whole on every rank (``layers/attention/mla_attention.py``).
"""

from __future__ import annotations

from fractions import Fraction

import attrs

from moeplan.units import ceil_div
from moeplan_vllm.models import Model

__all__ = ["Cache", "Unknown", "cache_of"]

_CACHE_BYTES = {
    "auto": 2,
    "bfloat16": 2,
    "float16": 2,
    "half": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_ds_mla": 1,
}


@attrs.frozen
class Unknown:
    """Why something is not known."""

    reason: str


@attrs.frozen
class Cache:
    """The cache of one rank.

    Attributes:
        layers: how many layers of each kind (``full``, ``sliding``, ``linear``).
        token_bytes: bytes of one token in one attention layer.
        block: tokens of a block.
        extra_bytes: bytes of one token beyond those, over all layers (an indexer's keys).
        window: tokens a sliding layer looks back.
        states: blocks of state that a request holds in each group of layers with states.
    """

    layers: dict[str, int]
    token_bytes: int
    block: int
    extra_bytes: int = 0
    window: int = 0
    states: int = 1

    @property
    def bytes_per_token(self) -> int:
        """Return what one more token takes in the layers whose cache grows with every token. Exact."""
        return self.token_bytes * self.layers.get("full", 0) + self.extra_bytes

    @property
    def group_size(self) -> int:
        """Return the layers of one group: the least count of a kind, or the most where the counts are near."""
        counts = [count for count in self.layers.values() if count]
        return max(counts) if 2 * max(counts) < 3 * min(counts) else min(counts)

    @property
    def block_bytes(self) -> int:
        """Return the bytes of one block of one group, over the group's layers."""
        return self.token_bytes * self.block * self.group_size + self.extra_bytes * self.block

    def blocks(self, available: int) -> int:
        """Return the blocks that fit ``available`` bytes."""
        return max(0, available) // self.block_bytes

    def blocks_per_request(self, tokens: int, in_flight: int) -> int:
        """Return the blocks one request of ``tokens`` takes; ``in_flight`` are those one step may add."""
        needed = 0
        for kind, count in self.layers.items():
            groups = ceil_div(count, self.group_size)
            if kind == "full":
                needed += groups * ceil_div(tokens, self.block)
            elif kind == "sliding":
                needed += groups * (ceil_div(min(self.window - 1 + in_flight, tokens), self.block) + 1)
            else:
                needed += groups * self.states
        return needed

    def requests(self, available: int, tokens: int, in_flight: int) -> Fraction:
        """Return how many requests of ``tokens`` the pool holds at once. Exact for the rule."""
        return Fraction(self.blocks(available), self.blocks_per_request(tokens, in_flight))

    def tokens(self, available: int, tokens: int, in_flight: int) -> int:
        """Return the tokens the pool holds in requests of ``tokens`` each, as the engine prints it, rounded down."""
        return int(self.requests(available, tokens, in_flight) * tokens)


def cache_of(
    model: Model, tensor: int, stage: range, kv_dtype: str, *, vendor: str = "nvidia", prefix_caching: bool = True
) -> Cache | Unknown:
    """Return the cache of a rank of one pipeline stage, or why no rule gives it.

    Args:
        model: the model.
        tensor: tensor-parallel size.
        stage: the stage's layers.
        kv_dtype: as ``--kv-cache-dtype``; ``auto`` is 16 bits.
        vendor: ``nvidia`` or ``amd``: blocks of layers with states round differently.
        prefix_caching: whether prefixes are kept: a request then holds two states instead of one.
    """
    size = _CACHE_BYTES.get(kv_dtype)
    if size is None:
        return Unknown(f"no rule for a cache of {kv_dtype}")
    if model.rule is None:
        return Unknown(f"no rule for the cache of {model.model_type or model.repository}")
    if model.heads is None or model.layers is None:
        return Unknown(f"heads and layers of {model.repository} are in no source")
    if model.indexer is not None:
        return _sparse(model, stage, size)
    if model.linear is not None:
        return _with_states(model, tensor, stage, size, vendor, 2 if prefix_caching else 1)
    if model.mla is not None:
        return Cache({"full": len(stage)}, model.mla.latent * size, 64)
    each = _grouped_bytes(model, tensor, size)
    if model.sliding_window is None:
        return Cache({"full": len(stage)}, each, 16)
    kinds = {kind: model.layer_kinds.get(kind, 0) for kind in ("full", "sliding")}
    if sum(kinds.values()) != len(stage):
        return Unknown("which layers of a pipeline stage look back only a window is in no source")
    return Cache(kinds, each, 16, window=model.sliding_window)


def _grouped_bytes(model: Model, tensor: int, size: int) -> int:
    return 2 * ceil_div(model.kv_heads or 0, tensor) * (model.head_dim or 0) * size


def _sparse(model: Model, stage: range, size: int) -> Cache | Unknown:
    """Return the cache of sparse latent attention: 656 bytes a token in fp8, and 132 for each layer's indexer."""
    if model.indexer is None or model.mla is None or model.indexer.layers is None:
        return Unknown("how many layers own an indexer is in no source")
    owners = min(len(stage), model.indexer.layers)
    each = 656 if size == 1 else model.mla.latent * size
    return Cache({"full": len(stage)}, each, 64, extra_bytes=132 * owners)


def _with_states(model: Model, tensor: int, stage: range, size: int, vendor: str, states: int) -> Cache | Unknown:
    linear = model.linear
    full = sum(1 for layer in stage if layer in model.full_layers)
    if not model.full_layers and len(stage) == model.layers:
        full = model.layer_kinds.get("full", 0)
    if linear is None or not full or full == len(stage):
        return Unknown("a pipeline stage without both kinds of layers")
    if model.mla is not None:
        each, align = model.mla.latent * size, 64 if vendor == "nvidia" else 128
    else:
        each, align = _grouped_bytes(model, tensor, size), 16
    heads, keys = ceil_div(linear.value_heads, tensor), ceil_div(linear.key_heads, tensor)
    channels = 2 * keys * linear.key_dim + heads * linear.value_dim
    state = channels * (linear.kernel - 1) * 2 + heads * linear.key_dim * linear.value_dim * 4
    block = ceil_div(ceil_div(state, each), align) * align
    return Cache({"full": full, "linear": len(stage) - full}, each, block, states=states)
