"""``routing_health``: figures against numpy and by hand, on real counts of an engine and on spoilt ones."""

from __future__ import annotations

import json
import re
from array import array
from pathlib import Path
from typing import Any

import attrs
import pytest

from moeplan.evaluation.expert_layers import CheckpointLayer, expert_layers
from moeplan.evaluation.expert_load import ExpertLoad, expected_selections, expert_load
from moeplan.model.checkpoint import CheckpointManifest, Tensor
from moeplan.model.evidence import EngineCounters
from moeplan.model.observations import ExpertCounts
from moeplan.model.plan import Objectives
from moeplan.model.series import ExpertCountTable
from tests.build import AT, STRANGER, build_plan, criterion_of, gate_of, make_checkpoint, make_deployment
from tests.build_observations import make_expert_table, make_series
from tests.unit.evaluation.routing_cases import (
    ALL_RANKS,
    COUNTERS,
    INTERVALS,
    ONE_RANK,
    Counts,
    case_with,
    counted_with,
    make_counts,
    make_layers,
    make_trace,
    routed,
    traced,
)

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
SERIES = SHARED / "samples/made/routing-series"


def observed(case: Any, id: str) -> tuple[str, Any, str | None]:
    result = criterion_of(case.judge(), id)
    return result.outcome, result.observed, result.reason


def test_a_sound_case_passes_every_criterion_with_figures_reckoned_by_hand() -> None:
    verdict = routed().judge()
    gate = gate_of(verdict, "routing_health")
    assert gate.outcome == "pass"
    assert {result.id.removeprefix("routing."): result.observed for result in gate.criteria} == {
        "expert_load": 0,
        "conservation": 0,
        "sample_size": 0,
        "load_ratio": 15_000,  # layer 1: 375 of 1,000 selections over 4 experts
        "load_ratio_peak": 20_000,  # layer 1, second interval: 250 of 500
        "effective_experts": 8888,  # layer 1: 1000² / (4 × (125² + 375² + 250² + 250²)) = 0.8888…
        "inactive_experts": 2500,  # one of four, layer 1, second interval
        "hot_experts": 0,
        "dead_experts": 0,
        "dropped_tokens": 0,
        "dropped_tokens_sum": 0,
        "communication": 16,  # two steps of eight ranks
        "routing_time": 503,
        "all_to_all": 0,
    }
    assert all(result.method.strip() for result in gate.criteria)


def test_coverage_names_the_checkpoint_manifest_among_its_evidence() -> None:
    case = routed()
    assert case.evidence.checkpoint_digest in criterion_of(case.judge(), "routing.expert_load").evidence


def test_a_limit_is_met_and_not_met() -> None:
    for limit, outcome in ((20_000, "pass"), (19_999, "fail")):
        plan = build_plan(objectives=Objectives(expert_load_ratio_basis_points_at_most=limit))
        case = case_with(make_counts(plan), make_trace(plan, ALL_RANKS, 8), plan=plan)
        assert observed(case, "routing.load_ratio_peak")[0] == outcome
        assert observed(case, "routing.load_ratio") == ("pass", 15_000, None)


def test_counts_that_are_not_believed_do_not_even_fail() -> None:
    plan = build_plan(objectives=Objectives(expert_load_ratio_basis_points_at_most=10_000))
    unbelieved = make_counts(plan, counters=attrs.evolve(COUNTERS, requests=29))
    assert observed(case_with(unbelieved, plan=plan), "routing.load_ratio") == (
        "inconclusive",
        15_000,
        "counts_not_conserved",
    )
    assert observed(case_with(make_counts(plan), plan=plan), "routing.load_ratio")[0] == "fail"


@pytest.mark.parametrize(
    ("change", "difference"),
    [({"prompt_tokens": 501}, 2), ({"cached_prompt_tokens": 90}, 20), ({"generation_tokens": 100}, 60)],
)
def test_selections_must_be_those_the_counters_imply(change: dict[str, int], difference: int) -> None:
    assert observed(counted_with(**change), "routing.conservation") == ("fail", difference, "limit_not_met")


def test_without_the_cached_tokens_nothing_is_conserved() -> None:
    case = counted_with(cached_prompt_tokens=None)
    assert observed(case, "routing.conservation") == ("inconclusive", None, "routing_counters_missing")


def test_an_interval_left_out_breaks_conservation() -> None:
    case = routed(INTERVALS[:1])
    assert observed(case, "routing.conservation") == ("fail", 500, "limit_not_met")
    assert observed(case, "routing.load_ratio_peak")[2] == "counts_not_conserved"


def test_a_layers_rows_left_out_leave_it_without_counts() -> None:
    case = routed([{0: parts[0]} for parts in INTERVALS])
    assert observed(case, "routing.expert_load") == ("inconclusive", 1, "layers_not_counted")
    assert observed(case, "routing.conservation") == ("fail", 1000, "limit_not_met")


def test_a_layer_with_fewer_experts_than_the_checkpoint_is_not_counted() -> None:
    counts: Counts = [{0: [250, 250, 250, 250], 1: [500, 250, 250]}]
    layers = (make_layers()[0], make_layers(experts=3)[1])
    assert observed(routed(counts, layers=layers), "routing.expert_load") == ("inconclusive", 1, "layers_not_counted")


def test_a_layer_called_a_drafters_is_not_counted() -> None:
    layers = (make_layers()[0], make_layers(drafter=True)[1])
    assert observed(routed(layers=layers), "routing.expert_load") == ("inconclusive", 1, "layers_not_counted")


def test_a_drafters_layer_beside_the_others_changes_nothing() -> None:
    counts = [{**parts, 2: [1, 0, 0, 0]} for parts in INTERVALS]
    layers = (*make_layers(), make_layers(3, drafter=True)[2])
    case = routed(counts, layers=layers)
    assert gate_of(case.judge(), "routing_health").outcome == "pass"
    assert observed(case, "routing.dead_experts") == ("pass", 0, None)


def test_counts_of_another_deployment_or_unsigned_or_later_never_pass() -> None:
    plan = build_plan()
    other = make_deployment(arguments=("--enforce-eager",))
    for changes, reason in (
        ({"deployment": other}, "mixed_deployments"),
        ({"signers": (STRANGER,)}, "no_trusted_runner"),
        ({"start": AT}, "after_instant"),
    ):
        case = case_with(make_counts(plan, **changes), make_trace(plan, ALL_RANKS, 8))
        verdict = case.judge()
        for id in ("routing.expert_load", "routing.load_ratio", "routing.hot_experts"):
            assert (criterion_of(verdict, id).outcome, criterion_of(verdict, id).reason) == ("inconclusive", reason)


def test_two_records_are_judged_together_by_the_worst() -> None:
    plan = build_plan()
    even = make_counts(plan, [{0: [250] * 4, 1: [0, 250, 250, 500]}])
    case = case_with(make_counts(plan), even, make_trace(plan, ALL_RANKS, 8))
    assert observed(case, "routing.load_ratio") == ("pass", 20_000, None)
    assert observed(case, "routing.dead_experts") == ("pass", 1, None)
    spoilt = case_with(make_counts(plan), make_counts(plan, counters=None))
    assert observed(spoilt, "routing.load_ratio")[2] == "routing_counters_missing"


class TestFigures:
    def test_hot_is_more_than_twice_the_mean(self) -> None:
        for counts, hot in (([500, 250, 125, 125], 0), ([501, 249, 125, 125], 1)):
            assert load_of([{0: counts}], layers=1).whole[0].hot == hot

    def test_stretches_join_intervals_until_every_layer_has_enough(self) -> None:
        quarter = {0: [100, 0, 0, 0], 1: [25, 25, 25, 25]}
        load = load_of([quarter] * 9)
        assert [stretch[0].selections for stretch in load.stretches] == [400, 500]
        assert load_of([quarter] * 3).stretches == ()

    def test_counts_near_the_greatest_integer_are_exact(self) -> None:
        most = 2**53 - 1
        load = load_of([{0: [most, most, most, 1]}] * 600, layers=1)
        assert load.whole[0].selections == 600 * (3 * most + 1)
        assert load.whole[0].squares == 600**2 * (3 * most**2 + 1)

    def test_an_empty_table_has_layers_without_selections(self) -> None:
        load = load_of([])
        assert [(layer.selections, layer.inactive, layer.ratio, layer.effective) for layer in load.whole] == [
            (0, 4, 0, 0)
        ] * 2

    def test_expected_selections(self) -> None:
        layer = make_layers()[0]
        assert expected_selections(layer, EngineCounters(12, 297, 0, 240)) == 2 * 525
        assert expected_selections(layer, EngineCounters(12, 297, None, 240)) is None


def load_of(counts: list[Any], layers: int = 2) -> ExpertLoad:
    table = make_expert_table(counts)
    payload = ExpertCounts(
        layers=make_layers(layers), ranks=("tp0",), interval_count=max(len(counts), 1), counters=None, row_count=1
    )
    return expert_load(payload, table)


def named(*names: str) -> CheckpointManifest:
    manifest = make_checkpoint()
    tensors = tuple(Tensor(name, "model.safetensors", "U8", (1,), 1) for name in sorted(names))
    return attrs.evolve(manifest, tensors=tensors)


class TestExpertLayers:
    @pytest.mark.parametrize(
        ("name", "experts"),
        [
            ("model.layers.3.mlp.experts.7.up_proj.weight", 1),
            ("model.layers.3.mlp.experts.gate_up_proj_blocks", 0),
            ("model.layers.3.block_sparse_moe.experts.0.w1.weight", 1),
            ("model.layers.3.block_sparse_moe.input_linear.weight", 0),
            ("transformer.blocks.3.ffn.experts.mlp.w1", 0),
            ("language_model.model.layers.3.feed_forward.experts.down_proj", 0),
            ("model.layers.3.moe.up_proj.weight", 0),
        ],
    )
    def test_names_of_published_checkpoints(self, name: str, experts: int) -> None:
        found = expert_layers(named(name, "model.layers.3.mlp.gate.weight", "model.embed_tokens.weight"))
        assert [(layer.number, layer.drafter) for layer in found] == [(3, False)]
        assert found[0].experts == experts

    @pytest.mark.parametrize(
        "name",
        [
            "model.layers.3.mlp.up_proj.weight",
            "model.layers.3.mlp.shared_experts.up_proj.weight",
            "model.layers.3.mlp.shared_expert.up_proj.weight",
            "experts.0.weight",
        ],
    )
    def test_what_is_no_expert(self, name: str) -> None:
        assert expert_layers(named(name)) == ()

    def test_experts_are_counted_by_their_indexes(self) -> None:
        names = [f"model.layers.0.mlp.experts.{n}.{part}" for n in range(5) for part in ("a", "b")]
        assert expert_layers(named(*names)) == (CheckpointLayer(0, 5, False),)

    def test_layers_of_a_drafter(self) -> None:
        found = expert_layers(
            named(
                "model.layers.0.mlp.experts.0.w",
                "model.layers.1.mlp.experts.0.w",
                "model.layers.1.eh_proj.weight",
                "mtp.layers.0.mlp.experts.0.w",
            )
        )
        assert [(layer.drafter, layer.number) for layer in found] == [(False, 0), (True, 0), (True, 1)]


class TestCommunication:
    def test_every_rank_counts_and_the_worst_decides(self) -> None:
        samples = [
            (10, "rank-0", 1000, 10, 300, 5),
            (10, "rank-1", 1000, 20, 250, 5),
            (3000, "rank-1", 1000, 20, 251, 0),
        ]
        case = traced(samples, world_size=2)
        assert observed(case, "routing.communication") == ("pass", 3, None)
        assert observed(case, "routing.all_to_all") == ("pass", 3000, None)
        assert observed(case, "routing.routing_time") == ("pass", 200, None)

    def test_a_rank_left_out_is_seen(self) -> None:
        case = traced([(10, "rank-1", 1000, 20, 250, 5)], world_size=2)
        assert observed(case, "routing.all_to_all") == ("inconclusive", None, "ranks_not_traced")

    def test_ranks_that_the_plan_has_and_the_trace_has_not(self) -> None:
        plan = build_plan()
        case = case_with(make_counts(plan), make_trace(plan, ONE_RANK))
        assert observed(case, "routing.all_to_all") == ("inconclusive", None, "ranks_not_traced")

    def test_a_sample_with_a_part_unread_or_told_twice_is_none(self) -> None:
        plan = build_plan()
        item = make_trace(plan, [(10, "rank-0", 1000, 10, 0, 5)])
        assert item.series is not None
        unread = attrs.evolve(item.series, state=("measured", "not_exposed", "measured", "measured"))
        twice = make_series([(10, "rank-0", name, 9, "ns") for name in ("step_ns", *PARTS, "routing_ns")])
        for table in (unread, twice):
            case = case_with(make_counts(plan), attrs.evolve(item, series=table))
            assert observed(case, "routing.communication") == ("inconclusive", 0, "too_few_steps")

    def test_without_a_trace_it_is_missing(self) -> None:
        case = case_with(make_counts(build_plan()))
        assert observed(case, "routing.all_to_all") == ("inconclusive", None, "missing_evidence")
        step = criterion_of(case.judge(), "routing.all_to_all").next
        assert step is not None
        assert "import torch-trace" in step


PARTS = ("routing_ns", "all_to_all_ns", "collective_ns")


def sampled() -> tuple[ExpertCounts, ExpertCountTable, Any]:
    """Return the recorded series as a record's payload and table, and the same growth as a numpy array."""
    import numpy as np

    lines = [json.loads(line) for line in (SERIES / "moeplan-probe-routing-1s.jsonl").read_text().splitlines()]
    seen = np.array([[line["counts"][f"model.layers.{n}.mlp.experts"] for n in range(4)] for line in lines])
    growth = np.diff(seen, axis=0)
    rows = [
        (interval, interval * 10**9, (interval + 1) * 10**9, layer, expert, int(growth[interval, layer, expert]))
        for interval, layer, expert in np.argwhere(growth).tolist()
    ]
    table = ExpertCountTable(*(array("q", (row[column] for row in rows)) for column in range(6)))
    scraped = dict(re.findall(r"^vllm:(\w+)\{[^}]*\} ([0-9.]+)$", (SERIES / "metrics-after.prom").read_text(), re.M))
    finished = re.search(
        r'request_success_total\{[^}]*"length"[^}]*\} ([0-9.]+)', (SERIES / "metrics-after.prom").read_text()
    )
    assert finished is not None
    counters = EngineCounters(
        int(float(finished[1])),
        int(float(scraped["prompt_tokens_total"])),
        int(float(scraped["prompt_tokens_cached_total"])),
        int(float(scraped["generation_tokens_total"])),
        preemptions=int(float(scraped["num_preemptions_total"])),
    )
    layers = make_layers(4, experts=16, top_k=4)
    payload = ExpertCounts(
        layers=layers, ranks=("tp0",), interval_count=len(growth), counters=counters, row_count=len(table)
    )
    return payload, table, growth


@pytest.mark.shared
@pytest.mark.skipif(not SERIES.is_dir(), reason="the shared samples are not here")
def test_recorded_counts_of_an_engine_close_and_have_the_figures_that_numpy_gives() -> None:
    import numpy as np

    payload, table, growth = sampled()
    load = expert_load(payload, table)
    assert payload.counters == EngineCounters(60, 5776, 0, 2880, preemptions=0)
    whole = growth.sum(axis=0)
    assert whole.sum(axis=1).tolist() == [4 * (5776 + 2880 - 60)] * 4
    assert [layer.selections for layer in load.whole] == whole.sum(axis=1).tolist()
    assert [expected_selections(layer, payload.counters) for layer in payload.layers] == [34_384] * 4
    ratio = whole.max(axis=1) / whole.mean(axis=1)
    assert [layer.ratio for layer in load.whole] == np.ceil(ratio * 10_000).astype(int).tolist()
    effective = whole.sum(axis=1) ** 2 / (whole**2).sum(axis=1) / 16
    assert [layer.effective for layer in load.whole] == np.floor(effective * 10_000).astype(int).tolist()
    assert [layer.hot for layer in load.whole] == (whole > 2 * whole.mean(axis=1, keepdims=True)).sum(axis=1).tolist()
    assert [layer.inactive for layer in load.whole] == (whole == 0).sum(axis=1).tolist()
    assert sum(stretch[0].selections for stretch in load.stretches) == 34_384
    assert all(layer.selections >= 1600 for stretch in load.stretches for layer in stretch)
    assert len(load.stretches) > 5


@pytest.mark.shared
@pytest.mark.skipif(not SERIES.is_dir(), reason="the shared samples are not here")
def test_the_recorded_counts_with_the_profile_run_would_not_close() -> None:
    """The first line of the series holds 2,048 identical tokens of the engine's own start."""
    line = json.loads((SERIES / "moeplan-probe-routing-1s.jsonl").read_text().splitlines()[-1])
    assert [sum(counts) - 8192 for counts in line["counts"].values()] == [34_384] * 4


def test_many_short_intervals_need_no_more_memory_than_their_rows() -> None:
    """A grid of 5,000 layers of 1,000,000 experts for each of 100,000 intervals would not fit anywhere."""
    rows, layers = 100_000, make_layers(5_000, experts=1_000_000)
    ones = array("q", [1]) * rows
    nothing = array("q", [0]) * rows
    numbers = array("q", range(rows))
    table = ExpertCountTable(numbers, numbers, array("q", range(1, rows + 1)), nothing, nothing, ones)
    payload = ExpertCounts(layers=layers, ranks=("tp0",), interval_count=rows, counters=None, row_count=rows)
    load = expert_load(payload, table)
    assert (load.whole[0].selections, load.whole[0].greatest, load.whole[0].inactive) == (rows, rows, 999_999)
    assert load.whole[1].selections == 0
    assert load.stretches == ()
