"""Planning alone in a process, without a second validation of a plan's parts, changes no byte of any line."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moeplan.catalogue.registries import load_registry
from moeplan.errors import InputError
from moeplan.model.plan import Scenario
from moeplan.planning.batch import Chunk, plan_chunk

REGISTRY = load_registry()
EDGE = st.sampled_from([0, 1, 2, 9999, 10_000, 10**6, 10**6 + 1, 10**9, 10**9 + 1, 2**53 - 1, 2**53])
COUNTS = EDGE | st.integers(1, 100_000)

lines = st.fixed_dictionaries(
    {
        "model": st.sampled_from([model.id for model in REGISTRY.models] + ["KIMI K3", "nope", ""]),
        "hardware": st.sampled_from([item.id for item in REGISTRY.hardware] + ["nope"]),
        "devices": COUNTS,
    },
    optional={
        "devicesPerNode": COUNTS,
        "reserveBps": COUNTS,
        "runtime": st.sampled_from(["", " VLLM", "sglang", "-x", "a" * 64, "a" * 65, "ü"]),
        "inputTokens": COUNTS,
        "outputTokens": COUNTS,
        "concurrency": COUNTS,
        "targetTtftMs": COUNTS,
        "targetInterTokenMs": COUNTS,
        "availability": st.sampled_from(["single", "ha", "none"]),
    },
)


@given(st.lists(lines, min_size=1, max_size=8), st.sampled_from(["1.0.0", "1.1.0"]))
def test_alone_or_not_the_lines_are_the_same(scenarios: list[dict[str, Any]], form: str) -> None:
    chunk = Chunk(1, tuple(json.dumps(item).encode() for item in scenarios))
    assert plan_chunk(REGISTRY, chunk, form, alone=True) == plan_chunk(REGISTRY, chunk, form)


def test_validation_is_back_on_afterwards() -> None:
    plan_chunk(REGISTRY, Chunk(1, (b'{"model":"kimi-k3","hardware":"h200","devices":8}', b"x")), "1.0.0", alone=True)
    assert not attrs.validators.get_disabled()
    with pytest.raises(InputError):
        Scenario("kimi-k3", "h200", 0)
