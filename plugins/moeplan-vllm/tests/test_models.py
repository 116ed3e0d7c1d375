"""Shapes of models and what a reference names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from moeplan_vllm.formats import FORMATS, matrix_bytes
from moeplan_vllm.models import find_model, models

SHARED = Path(__file__).resolve().parents[4] / "shared"


@pytest.mark.parametrize(
    ("reference", "repository"),
    [
        ("moonshotai/Kimi-K3", "moonshotai/Kimi-K3"),
        ("MOONSHOTAI/kimi-k3", "moonshotai/Kimi-K3"),
        ("/models/Kimi-K3/", "moonshotai/Kimi-K3"),
        ("Kimi-K3", "moonshotai/Kimi-K3"),
        ("/models/DeepSeek-V3.1", "deepseek-ai/DeepSeek-V3.1"),
        ("/models/Qwen3-235B-A22B-FP8", "Qwen/Qwen3-235B-A22B-FP8"),
        ("/hub/models--Qwen--Qwen3-30B-A3B/snapshots/ad44e777bcd18fa416d9da3bd8f70d33ebb85d39", "Qwen/Qwen3-30B-A3B"),
    ],
)
def test_references_that_name_one_model(reference: str, repository: str) -> None:
    found = find_model(reference)
    assert found is not None
    assert found.repository == repository


@pytest.mark.parametrize(
    "reference", ["/models/Kimi-K3-DSpark", "somebody/Kimi-K3", "Kimi-K3-FP8", "Kimi", "", "/", "DeepSeek-V3.1-FP4"]
)
def test_references_that_name_none(reference: str) -> None:
    assert find_model(reference) is None


def test_a_directory_name_of_two_owners_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    two = {key: models()["moonshotai/Kimi-K3"] for key in ("moonshotai/kimi-k3", "other/kimi-k3")}
    monkeypatch.setattr("moeplan_vllm.models._by_lower", lambda: two)
    assert find_model("Kimi-K3") is None
    assert find_model("other/Kimi-K3") is not None


def test_every_model_says_where_its_values_come_from() -> None:
    for model in models().values():
        assert model.sources, model.repository
        assert model.like is None or model.like in models(), model.repository
        assert model.formats is None or set(model.formats.values()) <= set(FORMATS), model.repository


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared facts do not lie beside the repository")
def test_values_are_those_of_the_facts() -> None:
    facts = json.loads((SHARED / "facts/model_facts.json").read_bytes())
    assert len(facts) == 112
    for name, fact in facts.items():
        model, values = models()[name], fact["values"]
        for ours, theirs in (
            (model.hidden_size, "hidden_size"),
            (model.layers, "num_hidden_layers"),
            (model.heads, "num_attention_heads"),
            (model.vocabulary, "vocab_size"),
            (model.context, "max_position_embeddings"),
            (model.tensor_bytes, "total_checkpoint_bytes"),
        ):
            assert ours == values.get(theirs) or theirs not in values, (name, theirs)
        if "kv_lora_rank" in values:
            assert model.mla is not None, name
            assert (model.mla.kv_rank, model.mla.rope) == (values["kv_lora_rank"], values["qk_rope_head_dim"]), name
        if "moe_intermediate_size" in values:
            assert model.experts is not None, name
            assert model.experts.intermediate == values["moe_intermediate_size"], name
        block = (values.get("quantization_config") or {}).get("weight_block_size")
        assert model.block == (block[0] if block else None) or fact.get("alias_of"), name


def test_bytes_of_matrices_by_hand() -> None:
    assert matrix_bytes("bf16", 10, 20) == 400
    assert matrix_bytes("fp8_128", 256, 130) == 256 * 130 + 4 * 2 * 2
    assert matrix_bytes("mxfp4", 2, 64) == 2 * (32 + 2)
    assert matrix_bytes("nvfp4", 2, 32) == 2 * (16 + 2) + 4
    assert matrix_bytes("int4_32", 2, 64) == 2 * (32 + 4)
    with pytest.raises(KeyError):
        matrix_bytes("int3", 2, 64)
