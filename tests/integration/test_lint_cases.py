"""The handed lint cases through the installed plugins: each expected id, and no other error or warning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moeplan.hooks.host import Host, open_host
from moeplan.workflows.lint import lint_sources, read_sources

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "cases" / "lint"
CASES: list[dict[str, Any]] = json.loads((SHARED / "index.json").read_text("utf-8"))["cases"] if SHARED.is_dir() else []
KEYS = {
    "gpu": "hardware",
    "gpus_per_node": "acceleratorsPerNode",
    "driver": "driver",
    "engine_version": "engineVersion",
    "model_storage": "modelStorage",
    "expected_ready_s": "expectedReadySeconds",
    "nodes": "nodes",
}
"""What the cases call their inputs, and the site's keys for it."""

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not CASES, reason="the handed cases do not lie beside the repository"),
]


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with open_host() as opened:
        assert {"vllm-cuda", "vllm-rocm-aiter"} <= {plugin.name for plugin in opened.plugins}
        yield opened


@pytest.mark.parametrize("told", [True, False], ids=["named", "recognised"])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(host: Host, case: dict[str, Any], told: bool) -> None:
    sources = read_sources({case["file"]: (SHARED / case["file"]).read_bytes()})
    site = {KEYS[key]: value for key, value in case["inputs"].items()}
    runtime, profile = (case["runtime"], case["combo"]) if told else (None, None)
    listed = lint_sources(host, sources, site, runtime, profile)
    found = {finding.id for finding in listed.findings if finding.severity != "info"}
    assert listed.failures == ()
    assert set(case["expect"]) <= found
    assert found <= {*case["expect"], *case["also_ok"]}
    assert all(finding.line and finding.column for finding in listed.findings)
