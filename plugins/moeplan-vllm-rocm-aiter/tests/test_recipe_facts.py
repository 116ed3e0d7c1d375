"""The fact files: every handed fact is there with its severity and sources, and log lines give the facts they show."""

from __future__ import annotations

import json
import re

import pytest
from moeplan_infera.facts import infera_facts
from moeplan_infera.preflight.rules import preflight_facts
from moeplan_infera.registered import RULES as INFERA_RULES
from moeplan_vllm_rocm_aiter.facts import all_facts, recipe_facts
from moeplan_vllm_rocm_aiter.plugin import moeplan_log_signatures, moeplan_runtime
from moeplan_vllm_rocm_aiter.profiles import profiles
from moeplan_vllm_rocm_aiter.rules import KERNEL_BLOCK, RULES
from moeplan_vllm_rocm_aiter.shapes import OVERLAY, shape_of
from recipe_manifests import FACTS, SHARED, handed

_with_shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not FACTS.exists(), reason="the shared facts do not lie beside the repository"),
]
_MILDER = {"R-NS-001": "warning", "R-OPR-008": "warning"}
"""What a manifest alone cannot show for certain is a warning here."""


def shared(function: object) -> object:
    for mark in _with_shared:
        function = mark(function)
    return function


def _told(line: str) -> dict[str, str]:
    """Return the ids and severities of the signatures that a line bears."""
    return {
        one.id: one.severity
        for one in recipe_facts().log_signatures()
        if all(text in line for text in one.literals) and (one.pattern is None or re.search(one.pattern, line))
    }


@shared
def test_every_handed_fact_is_here_with_its_severity() -> None:
    for given in handed()["facts"]:
        fact = recipe_facts()[given["id"]]
        assert fact.severity == _MILDER.get(fact.id, given["severity"]), fact.id
        assert (fact.silent, fact.basis) == (given["silent"], given["basis"]), fact.id
        assert fact.sources
        assert bool(fact.logs) or given["log_pattern"] is None, fact.id


@shared
def test_words_are_our_own() -> None:
    for given in handed()["facts"]:
        fact = recipe_facts()[given["id"]]
        for key in ("consequence", "condition"):
            sentence = given[key]
            if len(sentence) > 60:
                assert sentence not in (fact.consequence, fact.title, fact.message, fact.remedy), fact.id


@shared
def test_values_are_the_handed_ones() -> None:
    facts = {fact["id"]: fact for fact in handed()["facts"]}
    assert set(KERNEL_BLOCK) == set(facts["R-ENV-001"]["required"])
    assert facts["R-IMG-003"]["required"].endswith(OVERLAY)
    for profile, fact in (("opt/aggregated", "R-IMG-001"), ("stock/aggregated", "R-IMG-004")):
        shape = shape_of(profile)
        assert shape is not None
        assert facts[fact]["required"].endswith(shape.image)
    for combo, given in handed()["combos"].items():
        shape = shape_of(combo)
        assert shape is not None
        assert len(shape.roles) == given["nodes"]
        assert shape.draft is given["speculation"]
        engine = next(value for name, value in given["services"].items() if name != "server")
        flags = engine["containers"][0]["entry"]["flags"]
        length = flags.get("--max-model-len", flags.get("--context-length"))
        assert str(shape.max_num_seqs) == flags.get("--max-num-seqs", flags.get("--max-running-requests"))
        assert shape.max_model_len == (None if length is None else int(length))


@shared
def test_the_status_of_each_combination_is_that_of_the_validation_table() -> None:
    status = {
        "validated": "measured",
        "validated cross-node": "measured",
        "partly": "recipe_only",
        "not run": "recipe_only",
    }
    known = {one.id: one.status for one in profiles()}
    for name, told, _ in handed()["validation_status"]:
        if name in known:
            assert known[name] == status[told], name
    assert set(handed()["combos"]) <= set(known)
    assert known["opt/aggregated-kvd"] == known["opt/disaggregated-dspark-decode-only"] == "reported_failing"
    assert known["opt/aggregated-fp8-kv"] == "recipe_only"


def test_rules_are_facts_and_no_fact_is_in_two_sets() -> None:
    ids = {fact.id for fact in recipe_facts().facts}
    assert set(RULES) | set(INFERA_RULES) <= ids
    assert len(all_facts().facts) == len({fact.id for fact in all_facts().facts})
    assert all(recipe_facts().origin_of(fact.id) == "moeplan-infera" for fact in infera_facts().facts)
    assert set(moeplan_runtime().rules) == {*all_facts().rules(), *preflight_facts().rules()}


@pytest.mark.parametrize(
    ("line", "fact", "severity"),
    [
        ("AssertionError: AiterMLA flattened verify requires a uniform decode query len", "R-IMG-002", "error"),
        ("ValueError: Invalid FlyDSL kernel name: flydsl_moe1_afp8_wfp4", "R-ENV-001", "error"),
        ("(EngineCore pid=7) KeyError: 'model.layers.61.self_attn'", "R-ARG-007", "error"),
        ("pulling kv_caches for ['a'] failed: P num blocks less than D", "R-ARG-008", "error"),
        ("ERROR local blocks(12) < remote blocks(14)", "R-ARG-008", "error"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.32 GiB.", "R-ARG-002", "error"),
        ("TimeoutError: vLLM not ready after 1800s", "R-TIME-001", "error"),
        ("TimeoutError: vLLM not ready after 7200.0s", "R-TIME-001", "error"),
        ("Container main failed startup probe, will be restarted", "R-PRB-001", "error"),
        ("Warning  Unhealthy  Startup probe failed: connection refused", "R-PRB-001", "info"),
        ("WARNING running the draft eagerly", "R-SMK-004", "error"),
        ("hostPath type check failed: <MODEL_DIR> is not a directory", "R-PH-001", "error"),
        ('Pod "x" is invalid: spec.nodeSelector: Invalid value: "<DECODE_NODE>": a valid label', "R-PH-002", "error"),
        (
            "ValueError: '/models/Kimi-K3': not a local path and HF resolution failed: Repo id must be in the form",
            "R-WT-001",
            "error",
        ),
        ("OSError: /models/Kimi-K3-DSpark does not exist", "R-WT-002", "error"),
        (
            "libibverbs: Warning: Driver ionic does not support the kernel ABI of 4 (supports 1 to 1)",
            "R-PD-005",
            "error",
        ),
        ("Failed to connect to bootstrap server http://0.0.0.0:8998", "R-ARG-018", "error"),
        ("E0801 Failed to modify QP to RTR, check mtu, gid, peer lid: Connection timed out [110]", "R-PD-013", "error"),
        ("KV host IP pinned to RDMA rail 10.42.0.1", "R-PD-017", "error"),
        ("Failed to register memory 0x7f00 [12]", "R-LOG-007", "error"),
        ("Memory access fault by GPU node-2 on address 0x7f5d", "R-LOG-009", "error"),
        ("Node condition NodeHasDiskPressure", "R-WT-009", "warning"),
        ("0/2 nodes are available: 2 Insufficient amd.com/gpu.", "R-RES-003", "error"),
        ("infera-exec: required native capability 'mooncake' is not in the payload", "R-OVL-002", "error"),
    ],
)
def test_a_line_shows_its_fact(line: str, fact: str, severity: str) -> None:
    assert _told(line).get(fact) == severity


@pytest.mark.parametrize(
    "line",
    [
        "  DiskPressure     False   KubeletHasNoDiskPressure",
        "INFO args: {'speculative_config': {'model': '/models/Kimi-K3-DSpark'}}",
        "KV host IP pinned to RDMA rail 192.0.2.17",
        "INFO Free memory on device on startup. Desired GPU memory utilization is 0.88.",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "KeyError: 'model'",
        "AssertionError",
    ],
)
def test_a_line_of_a_healthy_or_another_run_shows_no_error(line: str) -> None:
    assert "error" not in _told(line).values()


def _reports() -> list[tuple[str, str, list[str]]]:
    path = SHARED / "cases" / "reports.json"
    if not path.exists():
        return []
    rows = json.loads(path.read_bytes())["reports"]
    mine = [row for row in rows if row["runtime"] == "vllm-rocm-aiter" and row["log_signature"]]
    return [(row["id"], row["log_signature"], row["related_facts"]) for row in mine]


@pytest.mark.parametrize(("report", "line", "related"), _reports())
def test_public_reports_are_named(report: str, line: str, related: list[str]) -> None:
    told = _told(line)
    assert told
    wanted = {"REP-067": "R-LOG-013", "REP-071": "R-LOG-014", "REP-114": "R-WT-001", "REP-123": "R-RES-005"}
    assert wanted.get(report) in told or set(related) & set(told)


@shared
def test_no_error_on_any_healthy_log() -> None:
    read = 0
    for path in (SHARED / "samples").rglob("*.log"):
        if "killed" in path.name:
            continue
        read += 1
        for line in path.read_text(errors="replace").splitlines():
            assert "error" not in _told(line).values(), (path.name, line)
    assert read > 3


def test_a_signature_says_enough() -> None:
    for one in moeplan_log_signatures():
        specific = sum(len(text) for text in one.literals) + len(re.sub(r"\\.|[^\w ]", "", one.pattern or ""))
        assert specific >= 8, one.id


def test_aims_are_what_the_recipe_says_of_the_four() -> None:
    # R-CHO-001: each of the four is the choice for something that no other is
    said = {profile.id: {one.aim for one in profile.aims if one.suits == "yes"} for profile in profiles()}
    assert said["opt/aggregated"] == {"tokens_per_accelerator", "one_node"}
    assert said["opt/aggregated-dspark"] == {"low_concurrency", "one_node"}
    assert said["opt/disaggregated"] == {"headroom", "high_concurrency"}
    assert said["opt/disaggregated-dspark"] == {"lowest_latency"}


def test_profiles_say_what_they_run_on() -> None:
    for profile in profiles():
        assert profile.nodes == (2 if "disaggregated" in profile.id else 1)
        assert profile.accelerators == (16 if "disaggregated" in profile.id else 8)
        assert (profile.speculation == "yes") == ("dspark" in profile.id)
        assert not profile.aims or profile.status != "reported_failing"
