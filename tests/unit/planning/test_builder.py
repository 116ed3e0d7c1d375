"""How a plan behaves: one row a scenario, with values worked out by hand from the facts.

Usable bytes of one device: floor(GB × 10^9 × (10000 - reserve) / 10000). Kimi K3: 1560860324864 bytes;
Qwen3-30B-A3B: 61064245248; DeepSeek V4 Pro: 864704792696.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.errors import InputError
from moeplan.model.plan import CheckpointRef, Plan, Scenario
from moeplan.model.registry import CompatibilityRecord, KnownInteger, Provenance, Registry, Unknown
from moeplan.planning.builder import plan
from moeplan.planning.export import plan_value_1_0_0
from moeplan.wire.documents import dump_document, load_document

ROOT = "sha256:" + "ab" * 32
MANIFEST = "sha256:" + "cd" * 32


def made(model: str = "kimi-k3", hardware: str = "h200", devices: int = 8, **rest: Any) -> Plan:
    return plan(load_registry(), Scenario(model, hardware, devices, **rest))


# model, hardware, devices, per node, reserve -> status, minimum, rounded, nodes
FLOORS = [
    ("kimi-k3", "h200", 8, 8, 1300, "fail", 13, 16, 2),
    ("kimi-k3", "h200", 12, 8, 1300, "fail", 13, 16, 2),
    ("kimi-k3", "h200", 13, 8, 1300, "pass", 13, 16, 2),
    ("kimi-k3", "h200", 16, 8, 1300, "pass", 13, 16, 2),
    ("kimi-k3", "mi355x", 8, 8, 1300, "pass", 7, 8, 1),
    ("kimi-k3", "h200", 1, 1, 1300, "fail", 13, 13, 13),
    ("kimi-k3", "h200", 1000, 72, 1300, "pass", 13, 72, 1),
    ("kimi-k3", "h200", 1000, 7, 0, "pass", 12, 14, 2),
    ("kimi-k3", "h200", 8, 8, 9999, "fail", 110700, 110704, 13838),
    ("kimi-k3", "rtx6000", 1000, 8, 9999, "fail", 325180, 325184, 40648),
    ("qwen3-30b-a3b", "h100", 1, 8, 0, "pass", 1, 8, 1),
    ("qwen3-30b-a3b", "h100", 1, 8, 2366, "pass", 1, 8, 1),
    ("qwen3-30b-a3b", "h100", 1, 8, 2367, "fail", 2, 8, 1),
    ("deepseek-v4-pro", "h200", 7, 8, 1300, "fail", 8, 8, 1),
    ("deepseek-v4-pro", "h200", 8, 8, 1300, "pass", 8, 8, 1),
    ("kimi-k3", "h200", 1_000_000, 100_000, 1300, "pass", 13, 100_000, 1),
]


@pytest.mark.parametrize("row", FLOORS)
def test_floor(row: tuple[Any, ...]) -> None:
    model, hardware, devices, per_node, reserve, status, minimum, rounded, nodes = row
    result = made(model, hardware, devices, devices_per_node=per_node, reserve_basis_points=reserve)
    floor = result.residency
    assert (floor.status, floor.minimum_accelerators, floor.rounded_accelerators, floor.rounded_nodes) == (
        status,
        minimum,
        rounded,
        nodes,
    )
    assert floor.tensor_bytes is not None
    assert floor.usable_bytes_per_accelerator is not None
    assert (minimum - 1) * floor.usable_bytes_per_accelerator < floor.tensor_bytes
    assert floor.tensor_bytes <= minimum * floor.usable_bytes_per_accelerator
    gates = [gate.status for gate in result.validation_gates]
    if status == "fail":
        assert result.readiness.status == "blocked"
        assert gates == ["required", *["blocked"] * 6]
        assert {d.status for d in attrs.astuple(result.dimensions, recurse=False)} == {"blocked"}
        assert result.next_action.code == "increase_capacity"
        assert str(minimum) in result.next_action.summary
        assert len(result.risks) == 4
    else:
        assert result.readiness.status == "validation_required"
        assert gates == ["required", "calculated_pass", *["required"] * 5]
        assert [d.status for d in attrs.astuple(result.dimensions, recurse=False)] == ["conditional", *["unknown"] * 3]
        assert result.next_action.code == "execute_validation"
        assert len(result.risks) == 3
    assert len(result.dimensions.load.known) == 2


def test_exact_integers_of_the_seed_scenario() -> None:
    assert made().residency == attrs.evolve(
        made().residency,
        tensor_bytes=1560860324864,
        tensor_bytes_from="registry",
        bytes_per_accelerator=141_000_000_000,
        usable_bytes_per_accelerator=122_670_000_000,
        usable_bytes_requested=981_360_000_000,
    )


def test_total_beyond_an_exact_integer_is_capped_where_it_changes_nothing() -> None:
    floor = made(devices=1_000_000).residency
    assert floor.usable_bytes_requested == 2**53 - 1 < 122_670_000_000 * 1_000_000
    limit = made(devices=1_000_000).validation_gates[1].criteria[1].limit
    assert limit == 2**53 - 1


def test_registry_defaults_fill_what_is_not_given() -> None:
    target = made().target
    assert (target.accelerators_per_node, target.reserve_basis_points) == (8, 1300)
    defaults = attrs.evolve(load_registry().defaults, reserve_basis_points=500, accelerators_per_node=4)
    mine = attrs.evolve(load_registry(), defaults=defaults)
    target = plan(mine, Scenario("kimi-k3", "h200", 8)).target
    assert (target.accelerators_per_node, target.reserve_basis_points) == (4, 500)


@pytest.mark.parametrize("hardware", ["h200", "H200-SXM", "NVIDIA H200 SXM", " nvidia/h200-sxm-141gb "])
@pytest.mark.parametrize("model", ["kimi-k3", "Kimi K3", "MOONSHOTAI/KIMI-K3"])
def test_every_name_gives_the_same_plan(model: str, hardware: str) -> None:
    assert made(model, hardware) == made()


@pytest.mark.parametrize("hardware", ["b300", "gb300", "gb200"])
def test_unknown_memory(hardware: str) -> None:
    result = made(hardware=hardware)
    assert result.readiness.static_residency == "unknown"
    assert result.readiness.status == "validation_required"
    assert result.next_action.code == "resolve_accelerator_memory"
    assert [gate.status for gate in result.validation_gates] == ["required"] * 7
    load = result.dimensions.load
    assert (load.status, load.evidence_class, load.known) == ("unknown", "unknown", ())
    assert result.residency.tensor_bytes == 1560860324864
    assert result.residency.minimum_accelerators is None
    assert len(result.risks) == 3
    assert result.validation_gates[1].criteria[1].limit is None
    assert result.validation_gates[3].criteria[1].limit is None


def without_size(registry: Registry) -> Registry:
    model = registry.models[0]
    claims = attrs.evolve(model.claims, artifact_tensor_bytes=Unknown(reason="not published", provenance=()))
    return attrs.evolve(registry, models=(attrs.evolve(model, claims=claims), *registry.models[1:]))


@pytest.mark.parametrize("hardware", ["h200", "b300"])
def test_unknown_tensor_bytes(hardware: str) -> None:
    result = plan(without_size(load_registry()), Scenario("kimi-k3", hardware, 8))
    assert result.next_action.code == "resolve_artifact_size"
    assert result.residency.tensor_bytes_from == "unknown"
    assert result.dimensions.load.evidence_class == "unknown"


def test_checkpoint_replaces_the_registrys_tensor_bytes() -> None:
    reference = CheckpointRef(MANIFEST, ROOT, 122_670_000_000)
    for registry in (load_registry(), without_size(load_registry())):
        result = plan(registry, Scenario("kimi-k3", "h200", 1, checkpoint=reference))
        floor = result.residency
        assert (floor.tensor_bytes, floor.tensor_bytes_from) == (122_670_000_000, "checkpoint_manifest")
        assert (floor.status, floor.minimum_accelerators) == ("pass", 1)
        assert result.artifact.checkpoint == reference
        rules = {rule.id: rule for rule in result.validation_gates[0].criteria}
        assert rules["artifact.files_digested"].limit == ROOT
        assert " --checkpoint checkpoint.json --json" in result.reproducibility.cli
    one_more = attrs.evolve(reference, tensor_bytes=122_670_000_001)
    assert plan(load_registry(), Scenario("kimi-k3", "h200", 1, checkpoint=one_more)).residency.status == "fail"


def test_a_checkpoint_without_a_tensor_leaves_the_size_unknown() -> None:
    result = plan(load_registry(), Scenario("kimi-k3", "h200", 1, checkpoint=CheckpointRef(MANIFEST, ROOT, 0)))
    assert (result.residency.status, result.residency.tensor_bytes) == ("unknown", None)
    assert (result.residency.tensor_bytes_from, result.next_action.code) == ("unknown", "resolve_artifact_size")


def with_record(status: str) -> Registry:
    registry = load_registry()
    place = (Provenance(registry.sources[0].id, None),)
    record = CompatibilityRecord("record", "kimi-k3", "h200", "vllm", status, "Reviewed.", place)
    return attrs.evolve(registry, compatibility=(record,))


@pytest.mark.parametrize("devices", [8, 16])
def test_unsupported_configuration_blocks(devices: int) -> None:
    result = plan(with_record("unsupported"), Scenario("kimi-k3", "h200", devices))
    second = "blocked" if devices == 8 else "calculated_pass"
    assert [gate.status for gate in result.validation_gates] == ["required", second, *["blocked"] * 5]
    assert result.readiness.status == "blocked"
    assert result.readiness.runtime_compatibility == "unsupported"
    assert result.next_action.code == "change_unsupported_configuration"
    assert {d.status for d in attrs.astuple(result.dimensions, recurse=False)} == {"blocked"}
    assert len(result.dimensions.load.known) == 2
    assert len(result.risks) == (4 if devices == 8 else 3)
    assert any("does not support" in risk for risk in result.risks)


def test_supported_record_removes_the_risk_and_holds_for_its_runtime_only() -> None:
    result = plan(with_record("supported"), Scenario("kimi-k3", "h200", 16, runtime=" VLLM"))
    assert result.readiness.runtime_compatibility == "supported"
    assert len(result.risks) == 2
    other = plan(with_record("supported"), Scenario("kimi-k3", "h200", 16, runtime="sglang"))
    assert other.readiness.runtime_compatibility == "unknown"
    assert len(other.risks) == 3
    assert "sglang" in other.risks[0]


def test_high_availability_changes_the_resilience_criteria_alone() -> None:
    single, ha = made(), made(availability="ha")
    assert single.validation_gates[:6] == ha.validation_gates[:6]
    extra = {rule.id for rule in ha.validation_gates[6].criteria} - {
        rule.id for rule in single.validation_gates[6].criteria
    }
    assert extra == {"resilience.requests_served"}
    lost = [planned.validation_gates[6].criteria[5] for planned in (single, ha)]
    assert [(rule.id, rule.comparator, rule.limit) for rule in lost] == [
        ("resilience.requests_lost", "reported", None),
        ("resilience.requests_lost", "le", 0),
    ]
    first, second = (result.validation_gates[6].acceptance_criteria for result in (single, ha))
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert len(second) == 2


def test_targets_become_limits_in_nanoseconds() -> None:
    result = made(
        target_ttft_ms=800,
        target_inter_token_ms=30,
        concurrency=4,
        input_tokens=64,
        output_tokens=5,
        prefix_cache_share_basis_points=250,
    )
    rules = {rule.id: rule for rule in result.validation_gates[4].criteria}
    assert rules["sla.ttft_p95"].limit == 800_000_000
    assert rules["sla.chunk_gap_p95"].limit == 30_000_000
    assert [rules[f"sla.{name}"].limit for name in ("concurrency", "input_tokens", "output_tokens_most")] == [4, 64, 5]
    assert rules["sla.prefix_cache_share"].limit == 250
    open_rules = {rule.id: rule for rule in made().validation_gates[4].criteria}
    assert open_rules["sla.prefix_cache_share"].limit is None
    fit = {"steady_state": 2500, "length": 10, "client": 1000, "warmup": 500}
    assert {name: rules[f"sla.{name}"].limit for name in fit} == fit
    assert (rules["sla.goodput"].comparator, rules["sla.goodput"].limit) == ("reported", None)
    # 59 requests, 4 at once: 15 rounds of 800 + 4 × 30 ms
    samples = rules["sla.ttft_p95"].samples
    assert samples is not None
    assert (samples.requests, samples.seconds) == (59, 14)
    assert result.validation_gates[4].acceptance_criteria[:2] == (
        "P95 of the time to first token stays within 800 ms.",
        "P95 of the time between tokens stays within 30 ms.",
    )


def test_only_one_criterion_asks_for_hashed_evidence() -> None:
    strong = [rule.id for gate in made().validation_gates for rule in gate.criteria if rule.min_binding != "declared"]
    assert strong == ["artifact.digest_before_execution"]


ERRORS: list[tuple[dict[str, Any], str, str]] = [
    ({"model": "kimi"}, "$.model", "unknown_model"),
    ({"hardware": "h201"}, "$.hardware", "unknown_hardware"),
    ({"runtime": "-vllm"}, "$.runtime", "invalid_runtime"),
    ({"runtime": "vl lm"}, "$.runtime", "invalid_runtime"),
    ({"runtime": "v" * 65}, "$.runtime", "invalid_runtime"),
    ({"runtime": "\u212avllm"}, "$.runtime", "invalid_runtime"),
    ({"runtime": "vllm\n"}, "$.runtime", "invalid_value"),
    ({"devices": 0}, "$.devices", "invalid_value"),
    ({"devices": 1_000_001}, "$.devices", "invalid_value"),
    ({"devices": True}, "$.devices", "invalid_value"),
    ({"devices": 8.0}, "$.devices", "invalid_value"),
    ({"devices_per_node": 0}, "$.devicesPerNode", "invalid_value"),
    ({"reserve_basis_points": 10_000}, "$.reserveBasisPoints", "invalid_value"),
    ({"reserve_basis_points": -1}, "$.reserveBasisPoints", "invalid_value"),
    ({"input_tokens": 0}, "$.inputTokens", "invalid_value"),
    ({"output_tokens": 0}, "$.outputTokens", "invalid_value"),
    ({"concurrency": 0}, "$.concurrency", "invalid_value"),
    ({"target_ttft_ms": 0}, "$.targetTtftMs", "invalid_value"),
    ({"target_inter_token_ms": 0}, "$.targetInterTokenMs", "invalid_value"),
    ({"availability": "HA"}, "$.availability", "invalid_value"),
    ({"prefix_cache_share_basis_points": 10_001}, "$.prefixCacheShareBasisPoints", "invalid_value"),
    ({"output_tokens": 10**9, "target_inter_token_ms": 10**9}, "$.outputTokens", "workload_too_long"),
]


@pytest.mark.parametrize(("change", "path", "code"), ERRORS)
def test_every_error_is_named(change: dict[str, Any], path: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        made(**change)
    assert [(issue.path, issue.code) for issue in caught.value.issues] == [(path, code)]


def test_memory_of_nothing_is_an_error() -> None:
    registry = load_registry()
    place = registry.hardware[0].memory_gigabytes.provenance
    nothing = attrs.evolve(registry.hardware[0], memory_gigabytes=KnownInteger(value=0, provenance=place))
    with pytest.raises(InputError) as caught:
        plan(attrs.evolve(registry, hardware=(nothing,)), Scenario("kimi-k3", "h200", 8))
    assert caught.value.issues[0].code == "no_usable_memory"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("vllm", "vllm"),
        (" VLLM ", "vllm"),
        ("", "unspecified"),
        ("  ", "unspecified"),
        ("SGLang-0.5_x", "sglang-0.5_x"),
    ],
)
def test_runtime_has_one_spelling(given: str, name: str) -> None:
    result = made(runtime=given)
    assert result.target.runtime == name
    assert f"--runtime {name} " in result.reproducibility.cli
    assert f"&runtime={name}&" in result.reproducibility.api_path
    assert name in result.validation_gates[2].objective


def test_the_same_inputs_give_the_same_plan() -> None:
    assert made() == made()
    assert plan_value_1_0_0(made()) == plan_value_1_0_0(made())


def test_a_workload_past_the_safe_integers_leaves_the_kv_capacity_open() -> None:
    """10^9 requests of 2 × 10^9 tokens are 2 × 10^18, past 2^53 - 1."""
    scenario = Scenario("kimi-k3", "h200", 16, input_tokens=10**9, output_tokens=10**9, concurrency=10**9)
    made = plan(load_registry(), scenario)
    limits = {item.id: item.limit for gate in made.validation_gates for item in gate.criteria}
    assert limits["memory.kv_capacity"] is None
    assert load_document(dump_document(made), Plan) == made
