"""Both forms of a plan, and that the fast writer equals RFC 8785."""

from __future__ import annotations

import json

import attrs
import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.errors import InputError
from moeplan.model.plan import CheckpointRef, Plan, Scenario
from moeplan.planning.builder import plan
from moeplan.planning.export import plan_bytes, plan_value_1_0_0
from moeplan.wire.documents import dump_document, load_document

DIGEST = "sha256:" + "ab" * 32
SCENARIOS = [
    Scenario("kimi-k3", "h200", 8),
    Scenario("glm-5-2", "b300", 3, runtime="", availability="ha", prefix_cache_share_basis_points=0),
    Scenario("qwen3-30b-a3b", "a100", 1000, checkpoint=CheckpointRef(DIGEST, DIGEST, 0)),
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_form_1_1_0_is_the_document(scenario: Scenario) -> None:
    made = plan(load_registry(), scenario)
    data = plan_bytes(made)
    assert data == dump_document(made)
    assert load_document(data, Plan) == made


def test_names_beyond_ascii_are_written_as_rfc_8785_does() -> None:
    registry = load_registry()
    named = attrs.evolve(registry.models[0], name='Modèle "K3" \\ 模型 \U0001f600')
    made = plan(attrs.evolve(registry, models=(named,)), SCENARIOS[0])
    assert plan_bytes(made) == dump_document(made)
    assert json.loads(plan_bytes(made, "1.0.0"))["artifact"]["modelName"] == named.name


def test_form_1_0_0_has_its_own_key_order_and_no_later_part() -> None:
    value = plan_value_1_0_0(plan(load_registry(), SCENARIOS[0]))
    assert list(value) == [
        "schemaVersion",
        "kind",
        "scenarioKey",
        "artifact",
        "target",
        "workload",
        "evidencePolicy",
        "readiness",
        "dimensions",
        "risks",
        "validationGates",
        "nextAction",
        "reproducibility",
    ]
    assert all("criteria" not in gate for gate in value["validationGates"])
    assert "checkpoint" not in value["artifact"]


def test_envelope_names_the_registry() -> None:
    for version in ("1.0.0", "1.1.0"):
        made = plan(load_registry(version), SCENARIOS[0])
        wrapped = json.loads(plan_bytes(made, "1.0.0", envelope=True))
        assert list(wrapped) == ["apiVersion", "registryVersion", "plan"]
        assert (wrapped["apiVersion"], wrapped["registryVersion"]) == ("v1", version)
        assert wrapped["plan"] == plan_value_1_0_0(made)


@pytest.mark.parametrize(("form", "envelope"), [("1.2.0", False), ("", False), ("1.1.0", True)])
def test_other_forms_are_refused(form: str, envelope: bool) -> None:
    with pytest.raises(InputError):
        plan_bytes(plan(load_registry(), SCENARIOS[0]), form, envelope=envelope)
