"""The catalogues against the plan: every criterion's metric is defined, with the criterion's unit."""

from __future__ import annotations

from moeplan.catalogue.gates import GATES
from moeplan.catalogue.metrics import METRICS, handoff
from moeplan.catalogue.registries import load_registry
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import GATE_IDS, Objectives, QualityReference, Scenario
from moeplan.planning.builder import plan

DECIDED = DeploymentSpec(None, Parallelism(8, 1, 2, 16), "fp8", "sha256:" + "d" * 64, (RoleSpec("serve", None),))
TASK = QualityReference("gsm8k", "exact_match", 1, 2, 100)
ASKED = Objectives(energy_millijoules_per_token_at_most=1, quality=(TASK,))
SCENARIOS = (
    Scenario("kimi-k3", "h200", 16),
    Scenario("kimi-k3", "h200", 16, availability="ha", deployment=DECIDED, objectives=ASKED),
)
CRITERIA = [
    criterion
    for scenario in SCENARIOS
    for gate in plan(load_registry(), scenario).validation_gates
    for criterion in gate.criteria
]


def test_every_criterion_has_its_metric_in_its_unit() -> None:
    for criterion in CRITERIA:
        assert METRICS[criterion.metric].unit == criterion.unit, criterion.id


def test_no_metric_is_without_a_criterion() -> None:
    """The hand-over from prefill to decode is asked for by plugins whose profiles part the two."""
    assert set(METRICS) - {metric.id for metric in handoff.METRICS} == {criterion.metric for criterion in CRITERIA}


def test_metrics_say_everything() -> None:
    for name, metric in METRICS.items():
        assert name == metric.id
        for text in (metric.title, metric.definition, metric.computation, metric.independence, metric.source):
            assert text.strip() == text != ""
            assert "\n" not in text


def test_gates_stand_in_order() -> None:
    assert tuple(GATES) == GATE_IDS
    assert [len(gate.required_evidence) for gate in GATES.values()] == [3] * 7
