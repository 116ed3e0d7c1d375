"""How many tokens a draft proposes at a time, beside what its recipe gives it."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan_vllm.families import family_of
from moeplan_vllm.rules.reading import known_text, parse_count, place_of

from moeplan.facts.judge import Hit
from moeplan.facts.launches import Scene

__all__ = ["block_of_tokens"]

_TOKENS = "argument --speculative-config num_speculative_tokens"
_RECIPES = {"kimi-k3": 8, "deepseek-v4-pro": 7, "deepseek-v4-flash": 7, "glm-5.2": 7}
"""Tokens that the recipes give a DSpark draft; its block, which it needs at least, is in the draft's own configuration.

Source: vLLM recipes at 8959cf64189c71d36e11c6a30335f923f261b1f7, the models' speculative features.
"""


def block_of_tokens(scene: Scene) -> Iterator[Hit]:
    """C-SPC-002: fewer tokens than the recipe's may be fewer than the draft's block, which no manifest tells."""
    for one in scene.engines():
        family = None if one.model_name is None else family_of(one.model_name)
        tokens = parse_count(known_text(one, _TOKENS) or "")
        if known_text(one, "derived speculation-method") != "dspark" or family not in _RECIPES or tokens is None:
            continue
        if tokens < _RECIPES[family]:
            message = (
                f"num_speculative_tokens is {tokens}; DSpark needs at least its draft's block, "
                f"and the recipe gives {_RECIPES[family]}"
            )
            yield Hit(place_of(one, _TOKENS), message, one, "info")
