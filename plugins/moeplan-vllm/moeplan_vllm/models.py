"""What is known of models' shapes, from their published configurations, and which one a reference names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import attrs

from moeplan_vllm.data import read_data

__all__ = ["Experts", "Indexer", "LinearAttention", "Mla", "Model", "find_model", "models"]

_CACHE_NAME = re.compile(r"models--(?P<owner>[^/]+?)--(?P<name>[^/]+)")


@attrs.frozen
class Mla:
    """Latent attention: ranks and head sizes; ``query_rank`` is None where queries have no low-rank step."""

    kv_rank: int
    rope: int
    nope: int
    value: int
    query_rank: int | None = None
    output_gate: bool = False

    @property
    def latent(self) -> int:
        """Return the values kept of each token and layer."""
        return self.kv_rank + self.rope


@attrs.frozen
class LinearAttention:
    """Layers with a state instead of a cache (GDN, KDA)."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    kernel: int
    full_rank_gate: bool = False


@attrs.frozen
class Indexer:
    """The indexer of sparse latent attention; ``layers`` own one, None where that is not known."""

    heads: int
    dim: int
    topk: int
    layers: int | None = None


@attrs.frozen
class Experts:
    """Routed and shared experts; ``latent`` is the routed experts' own hidden size where they have one."""

    routed: int
    per_token: int | None = None
    intermediate: int | None = None
    shared: int = 0
    shared_intermediate: int = 0
    latent: int | None = None
    dense_layers: int = 0


@attrs.frozen(kw_only=True)
class Model:
    """One model. None stands where no source says the value.

    Attributes:
        repository: its hub id.
        like: the model whose architecture values it shares, where its own configuration was not read.
        rule: which rule for weights and cache fits: ``gqa``, ``mla``, ``kda``, ``gdn``; None: no rule yet.
        layer_kinds: how many layers of each kind; empty where all are of one kind.
        full_layers: numbers, from 0, of the layers with full attention among others.
        formats: how each part is stored (``moeplan_vllm.formats``); None where the stored form is not known.
        quantisation: method, algorithm, block and the cache's format as the configuration names them.
        tensor_bytes: exact bytes of all tensors of the checkpoint.
        tensor_bytes_about: the same, rounded by its source.
        next_token_layers: layers of its own draft (MTP).
        vision: whether a vision tower comes with it.
    """

    repository: str
    like: str | None = None
    model_type: str | None = None
    rule: str | None = None
    hidden_size: int | None = None
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    output_gate: bool = False
    mla: Mla | None = None
    indexer: Indexer | None = None
    layer_kinds: Mapping[str, int] = attrs.field(factory=dict, hash=False)
    full_layers: tuple[int, ...] = ()
    linear: LinearAttention | None = None
    sliding_window: int | None = None
    experts: Experts | None = None
    dense_intermediate: int | None = None
    vocabulary: int | None = None
    tied_embeddings: bool = False
    context: int | None = None
    next_token_layers: int = 0
    vision: bool = False
    quantisation: Mapping[str, Any] = attrs.field(factory=dict, hash=False)
    formats: Mapping[str, str] | None = attrs.field(default=None, hash=False)
    router_format: str | None = None
    tensor_bytes: int | None = None
    tensor_bytes_about: int | None = None
    sources: tuple[str, ...] = ()

    @property
    def block(self) -> int | None:
        """Return the side of the blocks that weights are scaled by; None where they are not scaled by blocks."""
        sides = self.quantisation.get("block")
        return int(sides[0]) if sides else None


@cache
def models() -> Mapping[str, Model]:
    """Return every known model by its hub id."""
    return {row["repository"]: _model(row) for row in read_data("models.json")["models"]}


def find_model(reference: str) -> Model | None:
    """Return the model that a hub id or a directory names, or None; never a guess.

    A hub id (``owner/name``) must be a known one. Of a directory (``/models/Kimi-K3``, ``Kimi-K3``, a hub cache's
    ``models--owner--name/snapshots/…``) the name is compared whole and without regard to case, so that ``X-FP8`` is
    never ``X``; a name that two owners use is None.
    """
    text = reference.strip().rstrip("/")
    cached = _CACHE_NAME.search(text)
    if cached is not None:
        text = f"{cached['owner']}/{cached['name']}"
    if text.count("/") == 1 and not text.startswith(("/", ".", "~")):
        return _by_lower().get(text.lower())
    name = text.rpartition("/")[2].lower()
    found = [model for key, model in _by_lower().items() if key.rpartition("/")[2] == name]
    return found[0] if len(found) == 1 else None


@cache
def _by_lower() -> Mapping[str, Model]:
    return {repository.lower(): model for repository, model in models().items()}


_PARTS = {"mla": Mla, "indexer": Indexer, "linear": LinearAttention, "experts": Experts}


def _model(row: Mapping[str, Any]) -> Model:
    values = {_snake(key): value for key, value in row.items()}
    for name, cls in _PARTS.items():
        if name in values:
            values[name] = cls(**{_snake(key): value for key, value in values[name].items()})
    for name in ("full_layers", "sources"):
        values[name] = tuple(values.get(name, ()))
    return Model(**values)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: "_" + match[1].lower(), name)
