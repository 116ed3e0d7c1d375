"""The counters: for each layer and expert, selections of real tokens apart from those of padding and warm-up.

On GPUs a captured graph replays kernels, no Python: whatever decides must be in a tensor. So the number of real tokens
of a step lies in one, filled before the step, and rows beyond it are counted apart. Before the engine is ready, and in
dummy batches, it is 0: warm-up never mixes with what is served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moeplan_vllm_probe.faults import ProbeFault
from moeplan_vllm_probe.hooks import require
from moeplan_vllm_probe.layers import RoutedLayer

__all__ = ["Counters", "LayerCounts", "refuse_unknown_layout"]

_ALL = 1 << 40
"""More tokens than any step has: for drafters, whose steps are other than the scheduler's."""


class LayerCounts:
    """Counts of one layer as read: served, padding or warm-up, and ids that name no expert."""

    def __init__(self, values: list[int], experts: int) -> None:
        self.served = values[:experts]
        self.unserved = sum(values[experts : 2 * experts])
        self.strays = values[2 * experts]

    @property
    def seen(self) -> int:
        """Return how many selections reached the counter at all."""
        return sum(self.served) + self.unserved + self.strays


class Counters:
    """One tensor of counts a layer, on the layer's device."""

    def __init__(self, layers: list[RoutedLayer], device: Any, view: TokenView) -> None:
        """Make the counters and put each into its layer."""
        self._torch = require("torch")
        self.layers = layers
        self._real = self._torch.zeros(1, dtype=self._torch.int64, device=device)
        self._drafted = self._torch.zeros(1, dtype=self._torch.int64, device=device)
        self._slots = [2 * layer.experts + 1 for layer in layers]
        self._counts = [self._torch.zeros(slots, dtype=self._torch.int64, device=device) for slots in self._slots]
        self._callbacks = []
        for layer, counts in zip(layers, self._counts, strict=True):
            real = self._drafted if layer.draft else self._real
            self._callbacks.append(counter(self._torch, counts, real, layer.experts, view))
            layer.chain(self._callbacks[-1])

    @property
    def bytes(self) -> int:
        """Return the bytes that the counters take on the device."""
        return sum(8 * slots for slots in self._slots) + 16

    @property
    def displaced(self) -> list[str]:
        """Return the layers whose callback is no longer that of the probe, nor one that calls it."""
        pairs = zip(self.layers, self._callbacks, strict=True)
        return [layer.name for layer, count in pairs if not layer.calls(count)]

    def serve(self, tokens: int) -> None:
        """Say how many rows of the next step are tokens of requests."""
        self._real.fill_(tokens)

    def count_drafts(self) -> None:
        """Begin to count the drafter's rows as served."""
        self._drafted.fill_(_ALL)

    def snapshot(self) -> Any:
        """Return all counts in one tensor of the device, a copy in the order of the stream's work."""
        return self._torch.cat(self._counts) if self._counts else self._torch.zeros(0)

    def read(self, snapshot: Any) -> list[LayerCounts]:
        """Return a snapshot's counts by layer."""
        values, found = snapshot.tolist(), []
        for layer, slots in zip(self.layers, self._slots, strict=True):
            found.append(LayerCounts(values[:slots], layer.experts))
            values = values[slots:]
        return found


class TokenView:
    """Which rows of a layer's batch are tokens of this rank.

    Source of the layouts: vLLM 0.32.0, ``fused_moe/routed_experts_capturer.py``, ``RoutedExpertsCapturer.capture``.
    """

    def __init__(self, parallel: Any, tensor_rank: int = 0) -> None:
        self._ranks = int(getattr(parallel, "data_parallel_size", 1))
        self._rank = int(getattr(parallel, "data_parallel_rank", 0))
        self._tensor_size = int(getattr(parallel, "tensor_parallel_size", 1))
        self._tensor_rank = tensor_rank
        self.sharded = bool(getattr(parallel, "use_sequence_parallel_moe", False))
        self.plain = self._ranks == 1 and not self.sharded

    def rows(self, ids: Any) -> tuple[Any, int]:
        """Return this rank's rows and the token at which they start; -1 where the layout is none of the known."""
        metadata = require("vllm.forward_context").get_forward_context().dp_metadata
        if metadata is None:
            return ids, 0
        sizes = [int(size) for size in metadata.num_tokens_across_dp_cpu]
        own, rows = sizes[self._rank], int(ids.shape[0])
        if rows == own:
            return ids, 0
        if rows == sum(sizes):
            before = sum(sizes[: self._rank])
            return ids[before : before + own], 0
        shards = getattr(metadata, "local_sizes", None)
        if shards is not None and rows == sum(shards):
            each = len(shards) // len(sizes)
            before = sum(shards[: self._rank * each])
            return ids[before : before + own], 0
        if self.sharded and rows == -(-own // self._tensor_size):
            return ids, self._tensor_rank * rows
        return ids, -1


def counter(torch: Any, counts: Any, real: Any, experts: int, view: TokenView) -> Callable[[Any], None]:
    """Return the callback of one layer: tensor operations only, for it is compiled or captured into graphs."""

    def count(ids: Any) -> None:
        if view.plain:
            _add(torch, counts, ids, torch.arange(ids.shape[0], device=ids.device) >= real, experts)
            return
        rows, start = view.rows(ids)
        if start < 0:
            _add(torch, counts, torch.full_like(ids, -1), torch.arange(ids.shape[0], device=ids.device) < 0, experts)
        else:
            _add(torch, counts, rows, torch.arange(rows.shape[0], device=ids.device) + start >= real, experts)

    return count


def _add(torch: Any, counts: Any, ids: Any, apart: Any, experts: int) -> None:
    """Count ids: those of rows marked ``apart`` in the second half, those that name no expert in the last place."""
    wide = ids.to(torch.int64)
    places = wide + apart.to(torch.int64).unsqueeze(1) * experts
    places = torch.where((wide >= 0) & (wide < experts), places, 2 * experts).reshape(-1)
    counts.scatter_add_(0, places, torch.ones_like(places))


def refuse_unknown_layout(parallel: Any) -> None:
    """Refuse engines whose batches cannot be told apart into tokens of requests and padding.

    Raises:
        ProbeFault: micro-batches, or prefill shared out over ranks.
    """
    if getattr(parallel, "use_ubatching", False):
        raise ProbeFault("microbatches", "steps are cut into micro-batches", "start without --enable-dbo")
    if int(getattr(parallel, "prefill_context_parallel_size", 1)) > 1:
        raise ProbeFault(
            "context_parallel", "prefill is shared out over ranks", "start without --prefill-context-parallel-size"
        )
