"""How an engine is spread over ranks: sizes, stages, who holds which experts."""

from __future__ import annotations

import attrs

from moeplan.units import ceil_div

__all__ = ["Layout"]


@attrs.frozen
class Layout:
    """Sizes of one engine; ``expert`` says whether experts are held whole (``--enable-expert-parallel``).

    Source: vLLM 0.32.0 ``model_executor/layers/fused_moe/config.py`` ``FusedMoEParallelConfig.make``: the ranks of one
    pipeline stage (TP x DP) share the routed experts, whole with expert parallelism and each cut without it.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False

    @property
    def ranks(self) -> int:
        """Return the ranks of the whole engine."""
        return self.tensor * self.pipeline * self.data

    @property
    def expert_shards(self) -> int:
        """Return into how many parts each routed expert is cut."""
        return 1 if self.expert else self.tensor * self.data

    def experts_held(self, routed: int) -> int:
        """Return how many routed experts the fullest rank holds; the first ranks get one more of a remainder.

        Source: vLLM 0.32.0 ``layers/fused_moe/expert_map_manager.py``.
        """
        return ceil_div(routed, self.tensor * self.data) if self.expert else routed

    @property
    def whole_mlp(self) -> bool:
        """Return whether shared experts and dense MLPs stand whole on every rank (sequence-parallel MoE).

        Source: vLLM 0.32.0 ``config/parallel.py`` ``use_sequence_parallel_moe``: EP with TP > 1 and DP > 1.
        """
        return self.expert and self.tensor > 1 and self.data > 1

    def stages(self, layers: int) -> tuple[range, ...]:
        """Return the layers of each pipeline stage; a remainder goes to the stages before the last, from the back.

        Source: vLLM 0.32.0 ``distributed/utils.py`` ``get_pp_indices``, without VLLM_PP_LAYER_PARTITION.
        """
        sizes = [layers // self.pipeline] * self.pipeline
        for back in range(2, layers % self.pipeline + 2):
            sizes[-back] += 1
        starts = [sum(sizes[:number]) for number in range(self.pipeline)]
        return tuple(range(start, start + size) for start, size in zip(starts, sizes, strict=True))
