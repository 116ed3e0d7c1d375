"""Choosing among what was measured: whatever is left out, renamed or mixed in, the outcome is never ready.

The first part judges synthetic evidence that is ready as it stands, with nothing waived and bound as strongly as it can
be. The second part edits a tool's file and the engine's scrapes, and takes them through the commands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from moeplan.cli.main import main
from moeplan.model.plan import Plan
from moeplan.model.policy import LeastBinding
from moeplan.model.run_manifest import RunObservation
from moeplan.model.verified import VerifiedRecord
from tests.build import (
    MS,
    Case,
    Request,
    closing_counters,
    criterion_of,
    digest_of,
    make_checkpoint,
    make_deployment,
    make_evidence,
    make_policy,
    make_run,
    make_trial,
    steady_requests,
)
from tests.unit.evaluation.economics_cases import make_failure, make_price
from tests.unit.evaluation.loaded_cases import CONTENTS, make_loaded, make_tensor_digestion, tensor_rows
from tests.unit.evaluation.loading_cases import make_environment, make_log, make_smoke
from tests.unit.evaluation.memory_cases import DEVICES, make_memory, without
from tests.unit.evaluation.routing_cases import ALL_RANKS, INTERVALS, make_counts, make_layers, make_trace
from tests.unit.evaluation.service_cases import QUALITY_ID, answers, make_quality, quality_plan

PLAN = quality_plan()
OTHER = make_deployment(arguments=("--max-num-seqs", "512"))
COUNTED_START = "2026-03-01T18:00:00Z"
"""The start in which experts are counted is not the one that serves."""
ROWS = steady_requests(120)
SLOW = [attrs.evolve(row, ttft_ns=2000 * MS, end_ns=row.end + 2000 * MS) for row in ROWS[40:60]]
"""Twenty requests one after another: a slow interval, and a sixth of all."""
WITH_SLOW = [*ROWS[:40], *SLOW, *ROWS[60:]]
BROKEN = [attrs.evolve(row, outcome="truncated", output_tokens=3) for row in ROWS[40:46]]
WITH_BROKEN = [*ROWS[:40], *BROKEN, *ROWS[46:]]

Parts = dict[str, Callable[[Plan], VerifiedRecord]]
PARTS: Parts = {
    "digest": make_tensor_digestion,
    "loaded": make_loaded,
    "log": make_log,
    "environment": make_environment,
    "smoke": make_smoke,
    "memory": make_memory,
    "counts": lambda plan: make_counts(plan, engine_start=COUNTED_START),
    "trace": lambda plan: make_trace(plan, ALL_RANKS, 8),
    "price": make_price,
    "failure": make_failure,
    "quality": lambda plan: make_quality(plan, answers(700, 300)),
}


def proven(trials: Sequence[VerifiedRecord] | None = None, **changes: Callable[[Plan], VerifiedRecord] | None) -> Case:
    """Return a case with evidence of every kind; ``changes`` replace a part, or leave it out with its listing."""
    served = [make_trial(PLAN, number, ROWS) for number in (1, 2, 3)] if trials is None else list(trials)
    makers = {name: maker for name, maker in (PARTS | changes).items() if maker is not None}
    seen = [make(PLAN) for make in makers.values()]
    run = make_run(PLAN, served, observations=tuple(listed(item) for item in seen))
    policy = make_policy(PLAN, waivers=(), least_binding=(LeastBinding("workload_sla", "loaded"),))
    return Case(PLAN, make_evidence([*served, *seen], [run], make_checkpoint()), policy)


def listed(item: VerifiedRecord) -> RunObservation:
    return RunObservation(item.record.type, item.digest, tuple(part.digest for part in item.record.attachments))


def trials_of(rows: Sequence[Request], **changes: Any) -> list[VerifiedRecord]:
    return [make_trial(PLAN, number, rows, **changes) for number in (1, 2, 3)]


def packed_again(case: Case, records: Sequence[VerifiedRecord], **changes: Any) -> Case:
    """Return the case with an inventory of its own: it lists what is left and nothing more."""
    runs = changes.get("runs", case.evidence.runs)
    return case.but(evidence=make_evidence(records, runs, case.evidence.checkpoint))


def reason(case: Case, id: str) -> tuple[str, str | None]:
    """Return outcome and reason of a criterion in a case that must not be ready."""
    verdict = case.judge()
    assert verdict.readiness != "ready"
    found = criterion_of(verdict, id)
    return found.outcome, found.reason


def test_everything_proven_is_ready() -> None:
    verdict = proven().judge()
    assert [gate.outcome for gate in verdict.gates] == ["pass"] * 7
    assert verdict.readiness == "ready"
    assert {rule.outcome for gate in verdict.gates for rule in gate.criteria} == {"pass"}
    assert criterion_of(verdict, "sla.ttft_p95").binding == "loaded"


@pytest.mark.parametrize("part", sorted(PARTS))
def test_without_any_one_kind_it_is_not(part: str) -> None:
    without_it: dict[str, Any] = {part: None}
    assert proven(**without_it).judge().readiness != "ready"


@pytest.mark.parametrize("type", sorted({make(PLAN).record.type for make in PARTS.values()} | {"serving_trial"}))
def test_any_record_left_out_of_the_bundle_is_missed(type: str) -> None:
    case = proven()
    for item in [one for one in case.evidence.records if one.record.type == type]:
        kept = [other for other in case.evidence.records if other is not item]
        assert case.but_evidence(records=tuple(kept)).judge().readiness == "inconclusive"
        # Packed again by somebody who lists what is left: the run's signed manifest still names it.
        assert packed_again(case, kept).judge().readiness == "inconclusive"


class TestWorstTrial:
    def case(self) -> tuple[Case, VerifiedRecord, list[VerifiedRecord]]:
        trials = [make_trial(PLAN, number, WITH_SLOW if number == 2 else ROWS) for number in (1, 2, 3, 4)]
        case = proven(trials)
        return case, trials[1], [item for item in case.evidence.records if item is not trials[1]]

    def test_it_fails_as_it_stands(self) -> None:
        assert reason(self.case()[0], "sla.ttft_p95") == ("fail", "above_limit")

    def test_left_out(self) -> None:
        case, _worst, rest = self.case()
        for less in (case.but_evidence(records=tuple(rest)), packed_again(case, rest)):
            assert reason(less, "sla.ttft_p95") == ("inconclusive", "evidence_taken_away")

    def test_left_out_with_the_run_manifest(self) -> None:
        case, _worst, rest = self.case()
        assert reason(packed_again(case, rest, runs=()), "sla.ttft_p95") == ("inconclusive", "run_manifest_missing")

    def test_left_out_with_a_manifest_nobody_trusted_signed(self) -> None:
        case, _worst, rest = self.case()
        served = [item for item in rest if item.record.type == "serving_trial"]
        run = make_run(PLAN, served, signers=())
        assert reason(packed_again(case, rest, runs=(run,)), "sla.ttft_p95") == ("inconclusive", "no_trusted_runner")

    def test_said_to_be_aborted(self) -> None:
        case, worst, rest = self.case()
        run = case.evidence.runs[0]
        states = tuple(
            attrs.evolve(one, state="aborted", record=None) if one.record == worst.digest else one
            for one in run.manifest.trials
        )
        forged = attrs.evolve(run, manifest=attrs.evolve(run.manifest, trials=states))
        assert reason(packed_again(case, rest, runs=(forged,)), "sla.trials") == ("inconclusive", "trial_aborted")

    def test_replaced_by_a_copy_of_a_good_one(self) -> None:
        case, _worst, rest = self.case()
        good = next(item for item in rest if item.record.type == "serving_trial")
        copy = attrs.evolve(good, digest=digest_of("a copy"))
        served = [*[item for item in rest if item.record.type == "serving_trial"], copy]
        again = packed_again(case, [*rest, copy], runs=(make_run(PLAN, served),))
        assert reason(again, "sla.trials") == ("inconclusive", "trial_repeated")


class TestRequests:
    """The runner himself edits the client's file: the engine's counters tell another story."""

    @pytest.mark.parametrize("rows", [WITH_BROKEN, WITH_SLOW], ids=["failed", "slow"])
    def test_as_they_stand_they_fail(self, rows: list[Request]) -> None:
        assert proven(trials_of(rows)).judge().readiness == "not_ready"

    def test_failed_requests_left_out(self) -> None:
        whole = [row for row in WITH_BROKEN if row.outcome == "complete"]
        case = proven(trials_of(whole, engine_counters=closing_counters(WITH_BROKEN)))
        assert reason(case, "sla.engine_counters") == ("fail", "limit_not_met")
        assert criterion_of(case.judge(), "sla.failed_requests").outcome != "pass"

    def test_the_slow_interval_left_out(self) -> None:
        case = proven(trials_of([*ROWS[:40], *ROWS[60:]], engine_counters=closing_counters(WITH_SLOW)))
        assert reason(case, "sla.engine_counters") == ("fail", "limit_not_met")

    def test_left_out_without_counters(self) -> None:
        case = proven(trials_of([*ROWS[:40], *ROWS[60:]], engine_counters=None))
        assert reason(case, "sla.engine_counters") == ("inconclusive", "no_engine_counters")

    def test_left_out_of_a_table_under_the_run_as_it_was_announced(self) -> None:
        honest = trials_of(WITH_SLOW)
        picked = trials_of([*ROWS[:40], *ROWS[60:]])
        case = proven(picked)
        run = make_run(PLAN, honest, observations=case.evidence.runs[0].manifest.observations)
        again = packed_again(case, case.evidence.records, runs=(run,))
        assert reason(again, "sla.trials") == ("inconclusive", "evidence_taken_away")

    def warm(self, **sums: Any) -> Case:
        """Return the case in which the twenty slow requests are called warm-up, and all counters close."""
        kept = [*ROWS[:40], *ROWS[60:]]
        told = closing_counters(WITH_SLOW)
        assert told.requests == closing_counters(kept, len(SLOW)).requests
        return proven(trials_of(kept, warmup=len(SLOW), engine_counters=attrs.evolve(told, **sums)))

    def test_slow_requests_called_warm_up(self) -> None:
        case = self.warm()
        assert reason(case, "sla.warmup") == ("inconclusive", "warmup_hides")
        # The twenty leave a hole in the load, which shows too; everything else passes.
        left = {rule.id for rule in case.judge().gates[4].criteria if rule.outcome != "pass"}
        assert left == {"sla.concurrency", "sla.warmup"}

    def test_slow_requests_called_warm_up_of_an_engine_that_tells_no_times(self) -> None:
        assert reason(self.warm(ttft_ns=None, e2e_ns=None), "sla.warmup") == ("inconclusive", "warmup_not_observed")
        assert reason(self.warm(ttft_ns=None), "sla.warmup") == ("inconclusive", "warmup_not_observed")


class TestParts:
    """A record of which a part was left out by whoever made it."""

    @pytest.mark.parametrize(
        ("memory", "id", "why"),
        [
            (lambda plan: make_memory(plan, without(subject="tp3")), "memory.parts", "memory_part_not_told"),
            (
                lambda plan: make_memory(
                    plan, without(subject="gpu-7"), devices=[d for d in DEVICES if d.id != "gpu-7"]
                ),
                "memory.phases",
                "device_not_watched",
            ),
            (
                lambda plan: make_memory(plan, without(subject="gpu-5", between=(115, 145))),
                "memory.phases",
                "series_has_hole",
            ),
        ],
        ids=["a rank", "a device", "the interval of the peak"],
    )
    def test_a_memory_series(self, memory: Callable[[Plan], VerifiedRecord], id: str, why: str) -> None:
        assert reason(proven(memory=memory), id) == ("inconclusive", why)

    @pytest.mark.parametrize(
        ("counts", "layers", "id", "why"),
        [
            ([{0: parts[0]} for parts in INTERVALS], 1, "routing.expert_load", "layers_not_counted"),
            (INTERVALS[:1], 2, "routing.conservation", "limit_not_met"),
            ([{**INTERVALS[0], 1: [0, 125, 125, 125]}, INTERVALS[1]], 2, "routing.conservation", "limit_not_met"),
        ],
        ids=["a layer", "an interval", "an expert"],
    )
    def test_expert_counts(self, counts: Any, layers: int, id: str, why: str) -> None:
        case = proven(
            counts=lambda plan: make_counts(plan, counts, layers=make_layers(layers), engine_start=COUNTED_START)
        )
        outcome, told = reason(case, id)
        assert (outcome != "pass", told) == (True, why)
        assert reason(case, "routing.load_ratio")[0] == "inconclusive"

    def test_loaded_tensors(self) -> None:
        case = proven(loaded=lambda plan: make_loaded(plan, tensor_rows(w=None)))
        assert reason(case, "sla.ttft_p95") == ("inconclusive", "binding_too_weak")
        other = (CONTENTS["w"][0], digest_of("other weights"))
        case = proven(loaded=lambda plan: make_loaded(plan, tensor_rows(w=other)))
        assert reason(case, "artifact.files_digested") == ("fail", "loaded_bytes_differ")

    def test_wrong_answers(self) -> None:
        """620 right of 1,000 fail; without 300 wrong ones they look like 89 %."""
        assert reason(proven(quality=lambda plan: make_quality(plan, answers(620, 380))), QUALITY_ID)[0] == "fail"
        case = proven(quality=lambda plan: make_quality(plan, answers(620, 80)))
        assert reason(case, QUALITY_ID) == ("inconclusive", "too_few_documents")


class TestMixedIn:
    """A record of another deployment, engine start or plan in place of the one that belongs."""

    @pytest.mark.parametrize("part", sorted(set(PARTS) - {"digest"}))
    def test_of_another_deployment(self, part: str) -> None:
        def other(plan: Plan) -> VerifiedRecord:
            made = PARTS[part](plan)
            record = attrs.evolve(made.record, deployment=OTHER)
            return attrs.evolve(made, record=record, digest=digest_of(f"other {part}"))

        changes: dict[str, Any] = {part: other}
        case = proven(**changes)
        assert reason(case, "sla.ttft_p95") == ("inconclusive", "mixed_deployments")

    def test_a_trial_of_another_deployment(self) -> None:
        trials = [*trials_of(ROWS)[:2], make_trial(PLAN, 3, ROWS, deployment=OTHER)]
        assert reason(proven(trials), "sla.ttft_p95") == ("inconclusive", "mixed_deployments")

    def test_bytes_loaded_in_another_start(self) -> None:
        case = proven(loaded=lambda plan: make_loaded(plan, engine_start=COUNTED_START, start="2026-03-01T18:00:01Z"))
        assert reason(case, "sla.ttft_p95") == ("inconclusive", "binding_too_weak")

    def test_trials_of_the_start_in_which_experts_were_counted(self) -> None:
        assert reason(proven(counts=make_counts), "sla.ttft_p95") == ("inconclusive", "counting_on")


ROOT = Path(__file__).resolve().parents[2]
TRIALS = ROOT / "demo" / "trials"
KEY = ROOT / "tests" / "data" / "published-test-key.pem"
PACKAGES = ROOT / "demo" / "runtime-packages.txt"
PICKED = range(100, 120)
"""The requests that are made slow: by index, an interval of the trial."""
EXTRA_S = 0.5


def slowed(folder: Path) -> tuple[list[Path], list[Path]]:
    """Copy the recorded trials and scrapes; twenty requests a trial take half a second longer to the first token."""
    folder.mkdir()
    files, pages = [], []
    for number in (1, 2, 3):
        raw = json.loads((TRIALS / f"trial-{number}.json").read_bytes())
        for index in PICKED:
            raw["ttfts"][index] += EXTRA_S
            raw["latencies"][index] += EXTRA_S
        raw["duration"] += EXTRA_S
        files.append(folder / f"trial-{number}.json")
        files[-1].write_text(json.dumps(raw))
    for number, name in enumerate(("before", "after-1", "after-2", "after-3")):
        more = number * len(PICKED) * EXTRA_S
        text = (TRIALS / f"metrics-{name}.prom").read_text()
        pages.append(folder / f"{name}.prom")
        pages[-1].write_text(
            re.sub(
                r"(?m)^(vllm:(?:time_to_first_token|e2e_request_latency)_seconds_sum\{.*\}) (\S+)$",
                lambda line, more=more: f"{line[1]} {float(line[2]) + more}",  # type: ignore[misc]
                text,
            )
        )
    return files, pages


def picked(files: Sequence[Path]) -> None:
    """Leave the slow requests out of the tool's files, and out of its totals."""
    for path in files:
        raw = json.loads(path.read_bytes())
        for name, column in raw.items():
            if isinstance(column, list) and len(column) == 240:
                raw[name] = [value for index, value in enumerate(column) if index not in PICKED]
        raw["num_prompts"] = raw["completed"] = len(raw["ttfts"])
        raw["total_input_tokens"], raw["total_output_tokens"] = sum(raw["input_lens"]), sum(raw["output_lens"])
        path.write_text(json.dumps(raw))


def judged(demo: Path, folder: Path, files: Sequence[Path], pages: Sequence[Path], warmup: int) -> dict[str, Any]:
    """Import, pack, sign and judge; return outcome and reason of each criterion by id."""
    plan, checkpoint = str(demo / "plan.json"), str(demo / "checkpoint.json")
    words = ["import", "vllm-bench", *map(str, files), "--plan", plan, "--checkpoint", checkpoint]
    words += ["--runtime-packages", str(PACKAGES), "--requested-input", "128", "--requested-output", "64"]
    words += ["--concurrency", "4", "--warmup-requests", str(warmup), "--ignore-eos", "--utc-offset", "+00:00"]
    assert main([*words, "--metrics", *map(str, pages), "-o", str(folder / "imported")]) in (0, 1)
    bundle, policy, verdict = str(folder / "bundle"), str(folder / "policy.json"), folder / "verdict.json"
    words = ["bundle", "create", bundle, "--plan", plan, "--registry", str(ROOT / "demo" / "registry.json")]
    assert main([*words, "--checkpoint", checkpoint, "--evidence", str(folder / "imported")]) == 0
    assert main(["attest", bundle, "--key", str(KEY)]) == 0
    words = ["policy", "init", "--trust-key", str(KEY.with_suffix(".pub.pem")), "--test-keys"]
    assert main([*words, "--least-binding", "declared", "--plan", plan, "-o", policy]) == 0
    assert main(["verdict", bundle, "--policy", policy, "--at", "2026-12-01T18:00:00Z", "-o", str(verdict)]) in (1, 3)
    told = json.loads(verdict.read_bytes())
    assert told["readiness"] != "ready"
    return {rule["id"]: (rule["outcome"], rule["reason"]) for gate in told["gates"] for rule in gate["criteria"]}


class TestThroughTheCommands:
    def test_as_they_are(self, demo: Path, tmp_path: Path) -> None:
        files, pages = slowed(tmp_path / "made")
        told = judged(demo, tmp_path, files, pages, 16)
        assert told["sla.ttft_p95"] == ("fail", "above_limit")
        assert told["sla.engine_counters"] == told["sla.client"] == ("pass", None)

    def test_the_slow_interval_left_out_of_the_tool_s_file(self, demo: Path, tmp_path: Path) -> None:
        files, pages = slowed(tmp_path / "made")
        picked(files)
        told = judged(demo, tmp_path, files, pages, 16)
        assert told["sla.engine_counters"] == ("fail", "limit_not_met")

    def test_the_slow_interval_called_warm_up(self, demo: Path, tmp_path: Path) -> None:
        files, pages = slowed(tmp_path / "made")
        picked(files)
        told = judged(demo, tmp_path, files, pages, 16 + len(PICKED))
        assert told["sla.warmup"] == ("inconclusive", "warmup_hides")
