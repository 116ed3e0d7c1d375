"""What each combination runs with: nodes, GPUs a role, sizes, image."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

import attrs

from moeplan_vllm_rocm_aiter.recognising import OPTIMIZED, SGLANG, STOCK

__all__ = ["DRAFT_BYTES", "GPUS_A_ROLE", "MODELS", "OVERLAY", "Shape", "shape_of"]

GPUS_A_ROLE = 8
"""Source: facts R-ARG-004, R-RES-001."""
DRAFT_BYTES = 6_700_000_000
"""Tensor bytes of the DSpark draft, about. Source: fact R-WT-002."""
MODELS = ("kimi-k3",)
"""Registry ids of the models that the recipes are for."""
OVERLAY = "sha256:6918eff34f201548a738dd592d2a1ece0627354d2e88f24a87cfa8f787a72a44"
"""Digest of the overlay image. Source: fact R-IMG-003."""


@attrs.frozen
class Shape:
    """What a combination runs with.

    Attributes:
        image: digest of the image of engines and router.
        image_fact: id of the fact that says so.
        roles: engine roles, each on a node of its own.
        max_model_len: tokens a request may have, None for the model's own length.
        max_num_seqs: requests an engine takes at once.
        utilisation: share of GPU memory that the engine takes.
        batched_tokens: tokens of one step.
        draft: whether it speculates.
        kvd: whether it has the kvd cache.
    """

    image: str
    image_fact: str
    roles: tuple[str, ...]
    max_model_len: int | None
    max_num_seqs: int
    utilisation: Decimal
    batched_tokens: int | None = 4096
    draft: bool = False
    kvd: bool = False

    @property
    def gpus(self) -> int:
        """Return the GPUs of all roles."""
        return GPUS_A_ROLE * len(self.roles)


_FAMILIES: Mapping[str, tuple[str, str, int | None, int, Decimal]] = MappingProxyType(
    {
        "opt": (OPTIMIZED, "R-IMG-001", 1_048_576, 64, Decimal("0.88")),
        "stock": (STOCK, "R-IMG-004", None, 128, Decimal("0.95")),
    }
)
"""Family → image, its fact, --max-model-len, --max-num-seqs, --gpu-memory-utilization.

Source: facts R-IMG-001, R-IMG-004, R-ARG-010, R-ARG-002, R-ARG-003.
"""


def shape_of(profile: str) -> Shape | None:
    """Return what a profile runs with; None for one that is none of the recipes'."""
    family, _, combination = profile.partition("/")
    if family not in _FAMILIES:
        return None
    roles = ("prefill", "decode") if combination.startswith("disaggregated") else ("mixed",)
    if combination.endswith("-sglang"):
        return Shape(SGLANG, "R-IMG-005", roles, 32_768, 16, Decimal("0.97"), None)
    image, fact, length, sequences, share = _FAMILIES[family]
    draft, kvd = "dspark" in combination, combination.endswith("-kvd")
    return Shape(image, fact, roles, length, sequences, share, draft=draft, kvd=kvd)
