"""The plugin under the kit's suite; the other tests say what each fact finds."""

from __future__ import annotations

from moeplan.model.plan import Scenario
from moeplan.testing import CheckCase, LintCase, LintGolden, LogCase, RenderGolden, RuntimePluginSuite


class TestVllmCuda(RuntimePluginSuite):
    """vLLM on NVIDIA GPUs."""

    plugin = "vllm-cuda"
    negative = (
        LintCase("C-SPC-001", "cases/draft-in-stages.sh", {"engineVersion": "0.27.1"}),
        CheckCase("C-MEM-002", Scenario("kimi-k3", "h200", 8), {"profile": "single_node_tp"}),
        LogCase("C-SPC-008", "cases/eager.log"),
    )
    golden = (
        LintGolden("cases/draft-in-stages.sh", "golden/draft-in-stages.json", {"engineVersion": "0.27.1"}),
        RenderGolden(Scenario("qwen3-30b-a3b", "h200", 8), "cases/site.yaml", "golden/suite"),
    )
    healthy = (
        "golden/single-node-tep/30-serve.yaml",
        "golden/single-node-tep/serve-1-gpu-1.sh",
    )
    healthy_logs = ("cases/healthy.log",)
