"""Laws of planning: a plan makes its own scenario again, its bytes load to itself, the floor is exact and monotone."""

from __future__ import annotations

from fractions import Fraction

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from moeplan.catalogue.registries import load_registry
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec, RuntimeIdentity
from moeplan.model.plan import CheckpointRef, Plan, Scenario
from moeplan.planning.builder import plan
from moeplan.planning.export import plan_bytes
from moeplan.planning.scenario import rebuild_scenario
from moeplan.wire.converter import structure
from moeplan.wire.documents import dump_document
from moeplan.wire.strict_json import parse_strict

REGISTRY = load_registry()

digests = st.from_regex(r"sha256:[0-9a-f]{64}", fullmatch=True)
sizes = st.none() | st.integers(1, 100_000)
deployments = st.builds(
    DeploymentSpec,
    st.none() | st.sampled_from(["tp-only", "disaggregated"]),
    st.builds(Parallelism, sizes, sizes, sizes, sizes),
    st.none() | st.sampled_from(["fp8", "bf16"]),
    st.none() | digests,
    st.lists(
        st.builds(
            RoleSpec,
            st.sampled_from(["serve", "prefill", "decode"]),
            st.none()
            | st.builds(RuntimeIdentity, st.just("serve"), st.sampled_from(["oci_image", "distributions"]), digests),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
)
scenarios = st.builds(
    Scenario,
    model=st.sampled_from([m.id for m in REGISTRY.models] + [m.name.upper() for m in REGISTRY.models]),
    hardware=st.sampled_from([h.id for h in REGISTRY.hardware]),
    devices=st.integers(1, 1_000_000),
    devices_per_node=st.none() | st.integers(1, 100_000),
    reserve_basis_points=st.none() | st.integers(0, 9999),
    runtime=st.sampled_from(["", "vllm", " VLLM", "sglang", "a.b_c-d"]),
    input_tokens=st.integers(1, 10**9),
    output_tokens=st.integers(1, 10**6),
    concurrency=st.integers(1, 10**9),
    target_ttft_ms=st.integers(1, 10**9),
    target_inter_token_ms=st.integers(1, 10**6),
    availability=st.sampled_from(["single", "ha"]),
    prefix_cache_share_basis_points=st.none() | st.integers(0, 10_000),
    checkpoint=st.none() | st.builds(CheckpointRef, digests, digests, st.integers(0, 2**45)),
    deployment=st.none() | deployments,
)


@given(scenarios)
@settings(deadline=None)
def test_a_plan_is_made_again_from_its_own_scenario(scenario: Scenario) -> None:
    made = plan(REGISTRY, scenario)
    assert plan(REGISTRY, rebuild_scenario(made)) == made


@given(scenarios)
@settings(deadline=None)
def test_bytes_are_the_documents_and_load_to_the_plan(scenario: Scenario) -> None:
    made = plan(REGISTRY, scenario)
    data = plan_bytes(made)
    assert data == dump_document(made)
    assert structure(parse_strict(data), Plan) == made
    assert not list(made.faults())


@given(scenarios)
@settings(deadline=None)
def test_floor_agrees_with_fractions(scenario: Scenario) -> None:
    floor = plan(REGISTRY, scenario).residency
    if floor.minimum_accelerators is None or floor.bytes_per_accelerator is None or floor.tensor_bytes is None:
        assert floor.status == "unknown"
        return
    reserve = 1300 if scenario.reserve_basis_points is None else scenario.reserve_basis_points
    usable = int(Fraction(floor.bytes_per_accelerator) * Fraction(10_000 - reserve, 10_000))
    assert floor.usable_bytes_per_accelerator == usable
    needed = Fraction(floor.tensor_bytes, usable)
    assert floor.minimum_accelerators - 1 < needed <= floor.minimum_accelerators
    assert (floor.status == "pass") == (scenario.devices >= needed)
    per_node = scenario.devices_per_node or 8
    assert floor.rounded_accelerators is not None
    assert floor.rounded_accelerators % per_node == 0
    assert 0 <= floor.rounded_accelerators - floor.minimum_accelerators < per_node


@given(scenarios, st.integers(1, 1000), st.integers(0, 9999))
@settings(deadline=None)
def test_more_accelerators_or_less_reserve_never_fail_what_passed(scenario: Scenario, more: int, reserve: int) -> None:
    first = plan(REGISTRY, scenario)
    if first.readiness.static_residency != "pass":
        return
    less = min(reserve, first.target.reserve_basis_points)
    easier = attrs.evolve(scenario, devices=min(scenario.devices + more, 1_000_000), reserve_basis_points=less)
    assert plan(REGISTRY, easier).readiness.static_residency == "pass"
