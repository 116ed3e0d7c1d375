"""PodMonitor and PrometheusRule for vLLM's own metrics, made from a plan's criteria.

An alarm is no evidence: a histogram's quantile is interpolated between buckets and its clock is the engine's. It says
when to look.
Source: vLLM's metrics as the engine 0.27 exposes them; Prometheus Operator API, monitoring.coreos.com/v1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from moeplan.model.plan import Criterion, Plan

__all__ = ["handoff_rule", "pod_monitor", "prometheus_rule"]

_NS = Decimal(10) ** 9
_WINDOW = "[10m]"


def pod_monitor(
    name: str, namespace: str, selector: Mapping[str, Any], labels: Mapping[str, str], port: str = "http"
) -> dict[str, Any]:
    """Return a PodMonitor.

    Args:
        name: of the object.
        namespace: of the object and of the pods.
        selector: a label selector of the engines' pods.
        labels: of the object; some installations of Prometheus look for one of their own.
        port: name of the container's port that serves ``/metrics``.
    """
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "selector": dict(selector),
            "podMetricsEndpoints": [{"port": port, "path": "/metrics", "interval": "15s"}],
        },
    }


def prometheus_rule(
    name: str,
    namespace: str,
    plan: Plan,
    pods: str,
    labels: Mapping[str, str],
    more: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return a PrometheusRule with an alarm for each criterion that the engine's metrics say something about.

    Args:
        name: of the object.
        namespace: of the object and of the pods.
        plan: its criteria give the limits.
        pods: a regular expression that matches the names of the engines' pods.
        labels: of the object.
        more: further rules.
    """
    where = f'namespace="{namespace}",pod=~"{pods}"'
    rules = [*_rules(plan, where), *map(dict, more)]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {"groups": [{"name": name, "rules": rules}]},
    }


def handoff_rule(namespace: str, pods: str, least_percent: int) -> dict[str, Any]:
    """Return the alarm for decode engines that compute prompts themselves instead of taking the KV cache over.

    Args:
        namespace: of the pods.
        pods: a regular expression that matches the names of the decode engines' pods.
        least_percent: the least share of prompt tokens, in percent, that comes from the other side.
    """
    where = f'namespace="{namespace}",pod=~"{pods}"'
    share = _share("vllm:external_prefix_cache_hits_total", "vllm:external_prefix_cache_queries_total", where)
    text = "Decode takes less of the prompts' KV cache over than a working hand-off does; answers stay right meanwhile."
    return _alert("KvHandoffFailsOpen", f"{share} < {_decimal(Decimal(least_percent) / 100)}", text, "kv_handoff")


def _rules(plan: Plan, where: str) -> Iterator[dict[str, Any]]:
    for gate in plan.validation_gates:
        for criterion in gate.criteria:
            made = _MADE.get(criterion.metric)
            if made is not None and (found := made(criterion, where)) is not None:
                name, expression, text = found
                yield _alert(name, expression, text, criterion.id)


_Made = tuple[str, str, str] | None


def _ready(criterion: Criterion, where: str) -> _Made:
    return "EngineDown", f"up{{{where}}} == 0", "An engine's metrics cannot be had."


def _ttft(criterion: Criterion, where: str) -> _Made:
    return _quantile(criterion, where, "vllm:time_to_first_token_seconds", "TimeToFirstToken", "Time to first token")


def _chunk_gap(criterion: Criterion, where: str) -> _Made:
    return _quantile(criterion, where, "vllm:inter_token_latency_seconds", "InterTokenLatency", "Inter-token latency")


def _tpot(criterion: Criterion, where: str) -> _Made:
    metric, words = "vllm:request_time_per_output_token_seconds", "A request's time per output token"
    return _quantile(criterion, where, metric, "TimePerOutputToken", words)


def _quantile(criterion: Criterion, where: str, metric: str, name: str, words: str) -> _Made:
    if type(criterion.limit) is not int or criterion.comparator != "le":
        return None
    rate = f"sum by (le) (rate({metric}_bucket{{{where}}}{_WINDOW}))"
    limit = _decimal(Decimal(criterion.limit) / _NS)
    text = f"{words}, p95 by the engine's histogram, is above {limit} s."
    return f"{name}AboveLimit", f"histogram_quantile(0.95, {rate}) > {limit}", text


def _failed(criterion: Criterion, where: str) -> _Made:
    if type(criterion.limit) is not int:
        return None
    total = f'sum(increase(vllm:request_success_total{{{where},finished_reason=~"abort|error"}}{_WINDOW}))'
    return "RequestsFail", f"{total} > {criterion.limit}", "Requests were aborted or ended in an error."


def _cache_share(criterion: Criterion, where: str) -> _Made:
    if type(criterion.limit) is not int:
        return None
    limit = _decimal(Decimal(criterion.limit) / 10_000)
    share = _share("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total", where)
    text = "More prompt tokens come from the prefix cache than the workload declares: latencies flatter."
    return "PrefixCacheShareAboveDeclared", f"{share} > {limit}", text


_MADE: Mapping[str, Callable[[Criterion, str], _Made]] = {
    "engine_ready": _ready,
    "ttft_p95_ns": _ttft,
    "chunk_gap_p95_ns": _chunk_gap,
    "tpot_p95_ns": _tpot,
    "failed_requests": _failed,
    "prefix_cache_share_basis_points": _cache_share,
}
"""By metric of the catalogue: what of the engine's metrics stands nearest to it."""


def _share(part: str, whole: str, where: str) -> str:
    return f"sum(rate({part}{{{where}}}{_WINDOW})) / sum(rate({whole}{{{where}}}{_WINDOW}))"


def _decimal(value: Decimal) -> str:
    return format(value.normalize(), "f")


def _alert(name: str, expression: str, text: str, criterion: str) -> dict[str, Any]:
    return {
        "alert": name,
        "expr": expression,
        "for": "5m",
        "labels": {"severity": "warning", "criterion": criterion},
        "annotations": {
            "summary": text,
            "description": "An alarm, no evidence: a verdict needs imported measurements.",
        },
    }
