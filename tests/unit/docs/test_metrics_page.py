"""docs/metrics.md says of every metric what the catalogue says."""

from __future__ import annotations

import re

from moeplan.catalogue.metrics import METRICS
from moeplan.catalogue.registries import load_registry
from moeplan.model.plan import Scenario
from moeplan.planning.builder import plan
from tests.unit.docs.pages import ROOT, sections, table_rows

_PAGE = ROOT / "docs/metrics.md"
_OBSERVED = {
    "serving_trial",
    "checkpoint_digest",
    "checkpoint_manifest",
    "expert_counts",
    "communication_trace",
    "price",
    "failure_timeline",
    "engine_log",
    "environment",
    "smoke",
    "memory_series",
}
"""Evidence that this release can import or make."""


def _words(text: str) -> str:
    return " ".join(text.split())


def test_one_section_a_metric_in_the_catalogues_order() -> None:
    assert list(sections(_PAGE, 3))[-len(METRICS) :] == list(METRICS)


def test_each_section_holds_the_catalogues_texts_and_nothing_else() -> None:
    listed = sections(_PAGE, 3)
    for metric in METRICS.values():
        title = metric.title[0].upper() + metric.title[1:]
        assert _words(listed[metric.id]) == _words(
            f"{title}. {metric.definition} - Unit: `{metric.unit}` - Computation: {metric.computation} "
            f"- Unit of independence: {metric.independence} - Source: {metric.source}"
        )


def test_the_table_tells_judged_metrics_from_those_without_an_importer() -> None:
    gates = plan(load_registry(), Scenario("kimi-k3", "h200", 16, availability="ha")).validation_gates
    wanted = []
    for gate in gates:
        judged = [c.metric for c in gate.criteria if set(c.evidence_types) <= _OBSERVED]
        others = [c.metric for c in gate.criteria if c.metric not in judged]
        wanted.append([[gate.id], judged, others])
    rows = table_rows(sections(_PAGE, 2)["Which metrics are judged in this release"])
    assert [[re.findall("`([a-z0-9_]+)`", cell) for cell in row] for row in rows] == wanted
