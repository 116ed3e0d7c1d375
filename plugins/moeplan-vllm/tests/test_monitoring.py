"""Alarms from a plan's criteria, over metrics that a real engine exposes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from moeplan_vllm.monitoring import handoff_rule, pod_monitor, prometheus_rule

from moeplan.catalogue.registries import load_registry
from moeplan.model.plan import Plan, Scenario
from moeplan.planning.builder import plan as make_plan

REPOSITORY = Path(__file__).resolve().parents[3]
METRICS = REPOSITORY / "demo/trials/metrics-after-1.prom"
"""What vLLM itself served, recorded by the project's demonstration."""


def plan(**more: Any) -> Plan:
    values: dict[str, Any] = {"target_ttft_ms": 1500, "target_inter_token_ms": 40}
    return make_plan(load_registry(), Scenario("kimi-k3", "mi355x", 8, **(values | more)))


def rules(made: Plan) -> dict[str, dict[str, Any]]:
    value = prometheus_rule("k3", "infera", made, "k3-worker-.*", {"a": "b"})
    [group] = value["spec"]["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_each_limit_is_the_criterions_own_in_the_metrics_unit() -> None:
    made = rules(plan())
    where = '{namespace="infera",pod=~"k3-worker-.*"}'
    assert {name: rule["expr"] for name, rule in made.items()} == {
        "EngineDown": f"up{where} == 0",
        "TimeToFirstTokenAboveLimit": "histogram_quantile(0.95, sum by (le) "
        f"(rate(vllm:time_to_first_token_seconds_bucket{where}[10m]))) > 1.5",
        "InterTokenLatencyAboveLimit": "histogram_quantile(0.95, sum by (le) "
        f"(rate(vllm:inter_token_latency_seconds_bucket{where}[10m]))) > 0.04",
        "RequestsFail": "sum(increase(vllm:request_success_total"
        '{namespace="infera",pod=~"k3-worker-.*",finished_reason=~"abort|error"}[10m])) > 0',
    }
    ids = {criterion.id for gate in plan().validation_gates for criterion in gate.criteria}
    assert {rule["labels"]["criterion"] for rule in made.values()} <= ids


def test_a_declared_share_of_the_prefix_cache_is_watched() -> None:
    made = rules(plan(prefix_cache_share_basis_points=3000))
    assert made["PrefixCacheShareAboveDeclared"]["expr"].endswith("[10m])) > 0.3")


def test_a_plan_without_such_criteria_has_no_such_alarm() -> None:
    made = plan()
    gates = tuple(
        attrs.evolve(gate, criteria=tuple(one for one in gate.criteria if one.metric != "ttft_p95_ns") or gate.criteria)
        for gate in made.validation_gates
    )
    assert "TimeToFirstTokenAboveLimit" not in rules(attrs.evolve(made, validation_gates=gates))


@pytest.mark.skipif(not METRICS.exists(), reason="the recorded metrics are not in this tree")
def test_every_metric_is_one_that_the_engine_exposes() -> None:
    served = set(re.findall(r"^(vllm:[a-z_]+)\{", METRICS.read_text("utf-8"), re.MULTILINE))
    made = [rule["expr"] for rule in rules(plan(prefix_cache_share_basis_points=1)).values()]
    asked = {name for text in (*made, handoff_rule("n", "p", 98)["expr"]) for name in re.findall(r"vllm:[a-z_]+", text)}
    assert len(asked) == 7
    assert asked <= served, asked - served


def test_the_handoff_alarm_compares_shares() -> None:
    rule = handoff_rule("infera", "k3-decode-.*", 98)
    assert rule["expr"] == (
        'sum(rate(vllm:external_prefix_cache_hits_total{namespace="infera",pod=~"k3-decode-.*"}[10m])) / '
        'sum(rate(vllm:external_prefix_cache_queries_total{namespace="infera",pod=~"k3-decode-.*"}[10m])) < 0.98'
    )


def test_a_pod_monitor_selects_pods_in_its_namespace() -> None:
    made = pod_monitor("k3", "infera", {"matchLabels": {"app": "k3"}}, {"a": "b"})
    assert made["metadata"] == {"name": "k3", "namespace": "infera", "labels": {"a": "b"}}
    assert made["spec"] == {
        "selector": {"matchLabels": {"app": "k3"}},
        "podMetricsEndpoints": [{"port": "http", "path": "/metrics", "interval": "15s"}],
    }
