"""The plugin under the kit's suite: what it must find, what it must not, and what comes out."""

from __future__ import annotations

from pathlib import Path

import attrs

from moeplan.model.plan import Plan, Scenario
from moeplan.testing import CheckCase, LintCase, LintGolden, LogCase, RenderGolden, RuntimePluginSuite
from moeplan.testing.cases import load_plan

_PLAN = "../../../evidence/tiny-moe-cpu/bundle/plan.json"


def _recorded() -> Plan:
    return load_plan(Path(__file__).parent, _PLAN)


def _of_two_engines() -> Plan:
    plan = _recorded()
    sizes = attrs.evolve(plan.deployment.parallelism, data_parallel_size=2)
    return attrs.evolve(plan, deployment=attrs.evolve(plan.deployment, parallelism=sizes))


def _of_two_hosts() -> Plan:
    plan = _recorded()
    return attrs.evolve(plan, target=attrs.evolve(plan.target, requested_accelerators=2))


class TestVllmCpu(RuntimePluginSuite):
    """vLLM on CPUs."""

    plugin = "vllm-cpu"
    negative = (
        LintCase("CPU-EPLB-001", "cases/eplb.sh"),
        LintCase("CPU-ROUTED-001", "cases/routed.sh", {"engineVersion": "0.32.0"}),
        LintCase("CPU-ATTN-001", "cases/attention.sh"),
        LintCase("CPU-ATTN-001", "cases/attention-variable.sh"),
        LintCase("CPU-SLEEP-001", "cases/sleep.sh"),
        LintCase("CPU-EXEC-001", "cases/ray.sh", {"engineVersion": "0.8.5"}),
        LintCase("CPU-KV-001", "cases/no-kv.sh"),
        LintCase("CPU-KV-002", "cases/deployment.yaml"),
        LintCase("CPU-GPU-001", "cases/deployment.yaml"),
        LintCase("CPU-OMP-001", "cases/few-cores.sh"),
        LintCase("CPU-ENV-001", "cases/old-variable.sh"),
        CheckCase("CPU-PLAN-001", Scenario("kimi-k3", "h200", 8)),
        CheckCase("CPU-PLAN-002", _of_two_engines()),
        CheckCase("CPU-PLAN-002", _of_two_hosts()),
        CheckCase("CPU-MEM-001", _PLAN, {"nodes": [{"name": "small", "hostMemoryBytes": 4 << 30}]}),
        LogCase("CPU-EPLB-001", "cases/eplb.log"),
        LogCase("CPU-ROUTED-001", "cases/routed.log"),
        LogCase("CPU-ATTN-001", "cases/attention.log"),
        LogCase("CPU-SLEEP-001", "cases/sleep.log"),
        LogCase("CPU-EXEC-001", "cases/ray.log"),
        LogCase("CPU-KV-001", "cases/no-kv.log"),
        LogCase("CPU-MLA-001", "cases/mla.log"),
        LogCase("CPU-LOG-001", "cases/healthy.log"),
        LogCase("CPU-LOG-002", "cases/healthy.log"),
    )
    golden = (
        LintGolden("cases/deployment.yaml", "golden/deployment.json"),
        RenderGolden(_PLAN, "cases/site.yaml", "golden/kubernetes"),
        RenderGolden(_PLAN, "cases/bare-site.yaml", "golden/bare"),
    )
    healthy = ("cases/right.sh",)
    healthy_logs = ("cases/healthy.log",)
