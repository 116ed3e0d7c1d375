"""The plugin under the kit's suite; the other tests say what each fact finds."""

from __future__ import annotations

from moeplan.model.plan import Scenario
from moeplan.testing import CheckCase, LintCase, LintGolden, LogCase, RenderGolden, RuntimePluginSuite


class TestVllmRocmAiter(RuntimePluginSuite):
    """vLLM on AMD Instinct with ROCm, AITER and Infera."""

    plugin = "vllm-rocm-aiter"
    negative = (
        LintCase("R-ARG-002", "cases/utilisation.yaml"),
        CheckCase("R-CHO-004", Scenario("kimi-k3", "h200", 16), {"profile": "opt/aggregated"}),
        LogCase("R-SMK-004", "cases/eager.log"),
    )
    golden = (
        LintGolden("cases/utilisation.yaml", "golden/utilisation.json"),
        RenderGolden(Scenario("kimi-k3", "mi355x", 8), "../../../demo/site-mi355x.yaml", "golden/suite"),
    )
    healthy = ("golden/opt-aggregated/30-deployment.yaml", "golden/opt-disaggregated-dspark/30-deployment.yaml")
    healthy_logs = ("cases/healthy.log",)
