"""Which layers of a checkpoint hold experts, by the names of its tensors."""

from __future__ import annotations

import re

import attrs

from moeplan.model.checkpoint import CheckpointManifest

__all__ = ["CheckpointLayer", "expert_layers"]

_LAYER = re.compile(r"(?:^|\.)(?:layers|blocks|h)\.([0-9]{1,6})\.")
"""A numbered layer. Sources: tensor names of Qwen3-30B-A3B, Mixtral-8x7B, DeepSeek-V3, Kimi-K2 (``model.layers.N``),
DBRX (``transformer.blocks.N``) and Jamba (``model.layers.N``)."""
_EXPERTS = re.compile(r"\.experts\.(?:([0-9]{1,6})\.)?|\.(?:block_sparse_moe|moe)\.(?!experts\.)")
"""What lies under experts, and the expert's index where each has tensors of its own. ``shared_experts`` serve every
token and are not meant. ``block_sparse_moe``: GraniteMoE, whose experts share tensors; ``moe``: Step-3."""
_DRAFTER = re.compile(r"(?:^|\.)(?:mtp|mtp_layers)\.")
"""Layers that predict tokens further ahead. Sources: tensor names of Qwen3-Next (``mtp``) and MiMo (``mtp_layers``)."""
_DRAFTER_PARTS = re.compile(r"\.(?:eh_proj|enorm|hnorm)\.")
"""What makes a layer of the main stack one of those. Source: tensor names of DeepSeek-V3 (``model.layers.61``)."""


@attrs.frozen
class CheckpointLayer:
    """A layer with experts: its number, the fewest experts it has, and whether it belongs to a drafter.

    ``experts`` is 0 where all experts lie in one tensor, whose name tells no number.
    """

    number: int
    experts: int
    drafter: bool


def expert_layers(manifest: CheckpointManifest) -> tuple[CheckpointLayer, ...]:
    """Return the layers with experts that a checkpoint's tensors show, by number; those of a drafter last."""
    indexes: dict[tuple[bool, int], set[int]] = {}
    ahead: set[int] = set()
    for tensor in manifest.tensors:
        layer = _LAYER.search(tensor.name)
        if layer is None:
            continue
        number, drafter = int(layer[1]), _DRAFTER.search(tensor.name) is not None
        if not drafter and _DRAFTER_PARTS.search(tensor.name) is not None:
            ahead.add(number)
        expert = _EXPERTS.search(tensor.name, layer.end() - 1)
        if expert is not None:
            found = indexes.setdefault((drafter, number), set())
            if expert[1] is not None:
                found.add(int(expert[1]))
    layers = {(drafter or number in ahead, number, len(found)) for (drafter, number), found in indexes.items()}
    return tuple(CheckpointLayer(number, experts, drafter) for drafter, number, experts in sorted(layers))
