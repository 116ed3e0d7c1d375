"""What the plugin brings to the reading of manifests, and whose a manifest is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from moeplan_vllm.families import architecture, recognises
from moeplan_vllm.programs import role_of, vllm_programs
from moeplan_vllm.rules.derived import DERIVED

from moeplan.facts.launches import Knowledge

__all__ = ["knowledge", "owns"]

_IMAGES = ("vllm/vllm-openai-cpu", "vllm-openai-cpu")
_CPU = re.compile(r"vllm_cpu_|vllm-openai-cpu|vllm-cpu-env|vllm_target_device\W{1,4}cpu\b")
"""What only an engine on CPUs has. A plain ``vllm serve`` may run on anything, so the plugin cannot tell."""
_ENGINE = re.compile(r"vllm['\", ]+serve\b|vllm\.entrypoints|vllm-openai-cpu|vllm-cpu-env")


@cache
def knowledge() -> Knowledge:
    """Return what reads manifests for this plugin: vLLM's programs, whatever they run on."""
    return Knowledge(
        programs=vllm_programs(),
        versioned=_IMAGES,
        role=role_of,
        model=architecture,
        derived=dict(DERIVED),
        recognises=recognises,
    )


def owns(manifest: Mapping[str, Any] | str) -> bool | None:
    """Return whether a manifest or script runs vLLM on CPUs; None where nothing in it tells."""
    text = (manifest if isinstance(manifest, str) else repr(manifest)).lower()
    return True if _CPU.search(text) and _ENGINE.search(text) else None
