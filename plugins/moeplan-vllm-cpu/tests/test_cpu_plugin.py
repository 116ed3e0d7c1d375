"""What the suite does not ask of the plugin: its neighbours, twins of its negative cases, recorded logs, schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from moeplan_vllm_cpu.knowledge import owns
from moeplan_vllm_cpu.profiles import profiles

from moeplan.cli.main import main
from moeplan.model.plan import Plan
from moeplan.site.needs import with_core_needs
from moeplan.wire.documents import load_document
from moeplan.workflows.lint import lint

REPOSITORY = Path(__file__).resolve().parents[3]
SHARED = REPOSITORY.parent / "shared"
CASES = Path(__file__).parent / "cases"
PLAN = REPOSITORY / "evidence/tiny-moe-cpu/bundle/plan.json"


def ids(script: str, site: dict[str, object] | None = None) -> set[str]:
    listed = lint({"start.sh": script.encode()}, runtime="vllm-cpu", site=site)
    return {finding.id for finding in listed.findings if finding.severity != "info"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("VLLM_CPU_KVCACHE_SPACE=4 vllm serve m --no-enable-eplb", set()),
        ("VLLM_CPU_KVCACHE_SPACE=4 vllm serve m --attention-backend CPU_ATTN", set()),
        ("VLLM_CPU_KVCACHE_SPACE=4 vllm serve m --distributed-executor-backend mp", set()),
        ("VLLM_CPU_KVCACHE_SPACE=4 VLLM_CPU_OMP_THREADS_BIND=auto vllm serve m -tp 2", set()),
        ("VLLM_CPU_KVCACHE_SPACE=4 VLLM_CPU_OMP_THREADS_BIND='0-1|2-3|4-5' vllm serve m -tp 2", set()),
        ("VLLM_CPU_KVCACHE_SPACE=4 VLLM_CPU_OMP_THREADS_BIND=$CORES vllm serve m -tp 2", set()),
        ("VLLM_CPU_KVCACHE_SPACE=4 VLLM_CPU_OMP_THREADS_BIND=0 vllm serve m -tp $RANKS", set()),
        ("VLLM_CPU_KVCACHE_SPACE=4 VLLM_CPU_OMP_THREADS_BIND=0 vllm serve m -tp 2", {"CPU-OMP-001"}),
        ("docker run -e VLLM_CPU_MOE_PREPACK=1 vllm/vllm-openai-cpu:v0.11.2 --model m", set()),
        ("docker run -e VLLM_CPU_MOE_PREPACK=1 vllm/vllm-openai-cpu:v0.12.0 --model m", {"CPU-ENV-001"}),
    ],
)
def test_a_fact_holds_where_it_is_broken_and_nowhere_else(script: str, expected: set[str]) -> None:
    assert ids(script) == expected


@pytest.mark.parametrize(("version", "expected"), [("0.32.1", {"CPU-ROUTED-001"}), ("0.33.0", set()), ("", set())])
def test_routed_experts_are_judged_by_the_version_that_was_seen(version: str, expected: set[str]) -> None:
    site: dict[str, object] = {"engineVersion": version} if version else {}
    assert ids("vllm serve m --enable-return-routed-experts", site) == expected


@pytest.mark.parametrize(("memory", "found"), [("16Gi", True), ("17Gi", False), ("much", False)])
def test_kv_cache_is_counted_for_each_rank(memory: str, found: bool) -> None:
    text = (CASES / "deployment.yaml").read_text().replace("16Gi", memory)
    listed = lint({"deployment.yaml": text.encode()}, runtime="vllm-cpu")
    assert ("CPU-KV-002" in {finding.id for finding in listed.findings}) is found


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ("VLLM_CPU_KVCACHE_SPACE=4 vllm serve m", True),
        ("docker run vllm/vllm-openai-cpu:v0.32.0 --model m", True),
        ("vllm serve m --tensor-parallel-size 8", None),
        ("python -m sglang.launch_server --device cpu", None),
        ("export VLLM_CPU_KVCACHE_SPACE=4", None),
        ({"kind": "Pod", "spec": {"containers": [{"image": "vllm/vllm-openai-cpu:v0.32.0"}]}}, True),
        ({"kind": "Pod", "spec": {"containers": [{"image": "vllm/vllm-openai:v0.32.0"}]}}, None),
    ],
)
def test_it_knows_its_own_and_claims_nothing_else(manifest: object, expected: bool | None) -> None:
    assert owns(manifest) is expected  # type: ignore[arg-type]


def test_no_other_plugin_takes_its_manifests(capsys: pytest.CaptureFixture[str]) -> None:
    golden = Path(__file__).parent / "golden" / "kubernetes"
    files = [str(golden / name) for name in ("10-engine.yaml", "docker-run.sh", "serve.sh")]
    assert main(["lint", *files, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["summary"]["judged"]) == {"vllm-cpu"}
    assert told["summary"]["notJudged"] == []


def test_a_cpu_host_needs_no_driver_and_no_prices() -> None:
    (profile,) = profiles()
    needs = {need.key: need for need in with_core_needs(profile.site_needs)}
    for key in ("driver", "prices.acceleratorHour", "prices.currency"):
        assert not needs[key].required
    assert needs["engineVersion"].required, "the core's own need stands where the plugin says nothing"


def test_the_new_site_file_asks_for_neither(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    assert main(["site", "init", "--runtime", "vllm-cpu", "--profile", "single", "-o", str(path)]) == 0
    values = yaml.safe_load(path.read_text())
    assert "driver" not in values
    assert "prices" not in values
    assert values["acceleratorsPerNode"] == 1
    assert values["engineVersion"] is None


def test_render_and_check_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    site = str(CASES / "site.yaml")
    assert main(["check", str(PLAN), "--site", site, "--json"]) == 0
    assert main(["render", str(PLAN), "--site", site, "-o", str(tmp_path / "out")]) == 0
    for value in yaml.safe_load_all((tmp_path / "out" / "10-engine.yaml").read_text()):
        kubernetes_validate.validate(value, "1.31", strict=True)
    capsys.readouterr()


def test_the_plan_with_its_criterion_has_the_smallest_host(tmp_path: Path) -> None:
    from moeplan_vllm_cpu.checking import criteria

    plan = load_document(PLAN.read_bytes(), Plan)
    nodes = [{"name": "a", "hostMemoryBytes": 20}, {"name": "b", "hostMemoryBytes": 10}, {"name": "c"}]
    (offered,) = criteria(plan, {"nodes": nodes})
    assert (offered.gate, offered.metric, offered.comparator, offered.limit) == (
        "memory_envelope",
        "device_memory_peak_bytes",
        "le",
        10,
    )
    assert criteria(plan, {"nodes": 2}) == ()


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared samples are not here")
@pytest.mark.parametrize(
    ("log", "errors"),
    [
        ("serve.log", set()),
        ("moeplan-probe-serve.log", set()),
        ("vllm-enable-eplb-on-cpu.log", {"CPU-EPLB-001"}),
        ("vllm-enable-return-routed-experts-on-cpu.log", {"CPU-ROUTED-001"}),
    ],
)
def test_recorded_logs_tell_what_they_are(log: str, errors: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = SHARED / "samples" / "made" / log
    assert main(["diagnose", str(path), "--plugin", "vllm-cpu", "--json"]) == (1 if errors else 0)
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {one["id"] for one in found if one["severity"] == "error"} == errors
