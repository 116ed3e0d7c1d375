"""``runtime_load``: each criterion passes where all is there, and does not where one thing is spoilt."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from moeplan.importers.vllm_log import LogInputs, import_vllm_log
from moeplan.importers.vllm_log_lines import LogClock
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.observations import COMPLETE_ENVIRONMENT, EngineLog
from moeplan.model.plan import Objectives
from moeplan.model.verified import VerifiedRecord
from moeplan.units import parse_instant
from moeplan.wire.closed_table import load_table
from moeplan.wire.observation import ObservationContext
from moeplan.wire.series import SERIES
from tests.build import (
    ENGINE_START,
    RUNTIME,
    STRANGER,
    Case,
    build_plan,
    criterion_of,
    gate_of,
    make_deployment,
    make_evidence,
    make_spec,
    plan_identity,
)
from tests.unit.evaluation.economics_cases import make_failure
from tests.unit.evaluation.loading_cases import (
    LOG_ROWS,
    LogRow,
    S,
    case_with,
    drafted,
    fact,
    make_environment,
    make_log,
    make_smoke,
)

PLAN = build_plan()


def judged(case: Case, id: str) -> tuple[str, Any, str | None]:
    result = criterion_of(case.judge(), id)
    return result.outcome, result.observed, result.reason


def but(metric: str, value: int | str | None) -> tuple[LogRow, ...]:
    """Return the log's rows with another value of a metric, or without it."""
    changed = ((time, who, name, value if name == metric else old) for time, who, name, old in LOG_ROWS)
    return tuple((time, who, name, new) for time, who, name, new in changed if new is not None)


def with_log(*more: LogRow, **changes: Any) -> Case:
    return case_with(make_log(PLAN, (*LOG_ROWS, *more), **changes))


def test_the_whole_gate_passes_where_everything_is_there() -> None:
    case = case_with(make_log(PLAN), make_environment(PLAN), make_smoke(PLAN))
    verdict = case.judge()
    assert gate_of(verdict, "runtime_load").outcome == "pass"
    assert verdict.readiness == "ready"
    shown = {one.id: one.observed for one in gate_of(verdict, "runtime_load").criteria}
    assert shown == {
        "load.ready": "ready",
        "load.ready_time": 61,
        "load.fatal_signatures": 0,
        "load.smoke": 0,
        "load.environment": 0,
        "load.deployment": 0,
    }


@pytest.mark.parametrize("id", ["ready", "ready_time", "fatal_signatures", "smoke", "environment", "deployment"])
def test_without_evidence_each_is_inconclusive_and_says_what_to_do(id: str) -> None:
    result = criterion_of(case_with().judge(), f"load.{id}")
    assert (result.outcome, result.reason) == ("inconclusive", "missing_evidence")
    assert result.next is not None
    assert "moeplan" in result.next


class TestReady:
    def test_a_log_that_does_not_say_so_fails(self) -> None:
        case = case_with(make_log(PLAN, LOG_ROWS[:-1]))
        assert judged(case, "load.ready") == ("fail", "starting", "limit_not_met")
        assert judged(case_with(make_log(PLAN, LOG_ROWS[3:-1])), "load.ready")[:2] == ("fail", "unknown")

    def test_a_second_start_that_does_not_come_up_fails(self) -> None:
        case = with_log((900 * S, "api-server", "engine_state", "starting"))
        assert judged(case, "load.ready")[:2] == ("fail", "starting")
        case = with_log(
            (900 * S, "api-server", "engine_state", "starting"), (1000 * S, "api-server", "engine_state", "ready")
        )
        assert judged(case, "load.ready")[:2] == ("pass", "ready")
        assert judged(case, "load.ready_time")[:2] == ("pass", 101)

    def test_several_processes_of_one_start_are_one_start(self) -> None:
        case = with_log((2 * S, "api-server-1", "engine_state", "starting"))
        assert judged(case, "load.ready")[0] == "pass"

    def test_stopping_after_it_was_ready_is_no_fault(self) -> None:
        assert judged(with_log((2000 * S, "api-server", "engine_state", "stopped")), "load.ready")[0] == "pass"

    def test_a_node_without_a_server_of_its_own_starts_nothing_and_can_fail(self) -> None:
        rows: tuple[LogRow, ...] = ((0, "engine", "engine_state", "headless"),)
        second = make_log(PLAN, rows)
        both = case_with(make_log(PLAN), second)
        for id in ("ready", "ready_time", "fatal_signatures"):
            assert judged(both, f"load.{id}")[0] == "pass"
        assert judged(case_with(second), "load.ready") == ("inconclusive", "ready", "role_not_observed")
        assert judged(case_with(second), "load.ready_time")[0] == "inconclusive"
        broken = make_log(PLAN, (*rows, (S, "worker-tp8", "fatal_out_of_memory", 1)))
        assert judged(case_with(make_log(PLAN), broken), "load.fatal_signatures")[:2] == ("fail", 1)

    def test_each_role_of_the_plan_needs_its_log(self) -> None:
        spec = DeploymentSpec(
            None, Parallelism(8, None, None, None), None, None, (RoleSpec("prefill", None), RoleSpec("decode", None))
        )
        plan = build_plan(deployment=spec)
        both = [make_log(plan, role="prefill"), make_log(plan, role="decode")]
        assert judged(case_with(*both, plan=plan), "load.ready")[0] == "pass"
        assert judged(case_with(*both[:1], plan=plan), "load.ready") == ("inconclusive", "ready", "role_not_observed")


class TestReadyTime:
    @pytest.mark.parametrize(("limit", "outcome"), [(61, "pass"), (60, "fail")])
    def test_within_the_plans_limit(self, limit: int, outcome: str) -> None:
        plan = build_plan(objectives=Objectives(ready_within_seconds=limit))
        assert judged(case_with(make_log(plan), plan=plan), "load.ready_time")[:2] == (outcome, 61)

    def test_an_engine_start_before_the_log_counts_and_a_later_one_does_not(self) -> None:
        early = case_with(make_log(PLAN, start="2026-03-01T09:00:20Z", engine_start=ENGINE_START))
        assert judged(early, "load.ready_time")[1] == 81
        late = case_with(make_log(PLAN, engine_start="2026-03-01T09:00:50Z"))
        assert judged(late, "load.ready_time")[1] == 61
        assert judged(case_with(make_log(PLAN, engine_start=None)), "load.ready_time")[1] == 61

    def test_a_log_whose_start_is_cut_off_shows_no_time(self) -> None:
        case = case_with(make_log(PLAN, LOG_ROWS[2:], whole=False))
        assert judged(case, "load.ready_time") == ("inconclusive", None, "log_not_whole")


class TestFatal:
    def test_lines_are_summed_over_causes_and_logs(self) -> None:
        died: LogRow = (90 * S, "engine-core", "fatal_engine_died", 3)
        memory: LogRow = (80 * S, "worker-tp1", "fatal_out_of_memory", 1)
        assert judged(with_log(died, memory), "load.fatal_signatures") == ("fail", 4, "limit_not_met")
        plugin: LogRow = (80 * S, "worker-tp1", "fatal_vllm-cuda.c-mem-001", 2)
        assert judged(with_log(plugin), "load.fatal_signatures")[:2] == ("fail", 2)

    def test_a_failure_in_a_cut_log_is_one_all_the_same(self) -> None:
        case = with_log((80 * S, "worker-tp1", "fatal_out_of_memory", 1), whole=False, seconds=100)
        assert judged(case, "load.fatal_signatures")[:2] == ("fail", 1)

    def test_a_log_that_trials_outlast_shows_nothing(self) -> None:
        end = max(item.record.interval.end for item in case_with().evidence.records if item.requests is not None)
        for slack, outcome in ((-15, "pass"), (-16, "inconclusive")):
            seconds = parse_instant(end) - parse_instant(ENGINE_START) + slack
            assert judged(case_with(make_log(PLAN, seconds=seconds)), "load.fatal_signatures")[0] == outcome

    def test_an_engine_that_was_killed_on_purpose_may_say_that_it_died(self) -> None:
        plan = PLAN
        timeline = make_failure(plan, start="2026-03-01T20:00:00Z")
        within = (11 * 3600 + 20) * S
        rows = (*LOG_ROWS, (within, "api-server", "fatal_engine_died", 15))
        assert judged(case_with(make_log(plan, rows), timeline), "load.fatal_signatures")[:2] == ("pass", 0)
        assert judged(case_with(make_log(plan, rows)), "load.fatal_signatures")[:2] == ("fail", 15)
        unsigned = make_failure(plan, start="2026-03-01T20:00:00Z", signers=(STRANGER,))
        assert judged(case_with(make_log(plan, rows), unsigned), "load.fatal_signatures")[:2] == ("fail", 15)
        before = (*LOG_ROWS, (within - 3600 * S, "api-server", "fatal_engine_died", 15))
        assert judged(case_with(make_log(plan, before), timeline), "load.fatal_signatures")[:2] == ("fail", 15)
        memory = (*LOG_ROWS, (within, "api-server", "fatal_out_of_memory", 1))
        assert judged(case_with(make_log(plan, memory), timeline), "load.fatal_signatures")[:2] == ("fail", 1)

    def test_what_the_cluster_tells_counts_and_is_no_log_of_an_engine(self) -> None:
        killed = make_log(PLAN, ((S, "process-1", "fatal_killed_for_memory", 1),), engine="kubernetes", whole=False)
        warned = make_log(PLAN, ((S, "process-1", "event_backoff", 3),), engine="kubernetes", whole=False)
        assert judged(case_with(make_log(PLAN), killed), "load.fatal_signatures")[:2] == ("fail", 1)
        assert judged(case_with(killed), "load.fatal_signatures")[:2] == ("fail", 1)
        assert judged(case_with(make_log(PLAN), warned), "load.fatal_signatures")[:2] == ("pass", 0)
        assert judged(case_with(make_log(PLAN), warned), "load.ready")[:2] == ("pass", "ready")
        assert judged(case_with(warned), "load.fatal_signatures")[2] == "missing_evidence"
        assert judged(case_with(warned), "load.ready")[2] == "missing_evidence"


class TestEnvironment:
    @pytest.mark.parametrize("part", COMPLETE_ENVIRONMENT)
    def test_each_part_is_needed(self, part: str) -> None:
        case = case_with(make_environment(PLAN, set(COMPLETE_ENVIRONMENT) - {part}))
        assert judged(case, "load.environment") == ("inconclusive", 1, "environment_incomplete")

    def test_the_log_tells_what_only_the_engine_knows(self) -> None:
        told = {"kernel_backend", "precision", "runtime", "sharding"}
        environment = make_environment(PLAN, set(COMPLETE_ENVIRONMENT) - told)
        assert judged(case_with(environment), "load.environment")[1] == 4
        assert judged(case_with(environment, make_log(PLAN)), "load.environment")[:2] == ("pass", 0)
        bare = make_log(PLAN, but("attention_backend", None))
        assert judged(case_with(environment, bare), "load.environment")[1] == 1

    def test_every_node_of_the_deployment_needs_its_own(self) -> None:
        deployment = make_deployment(nodes=("node-a", "node-b"))
        first = make_environment(PLAN, deployment=deployment)
        second = make_environment(PLAN, node="node-b", deployment=deployment)
        one, both = case_with(first, plan=build_plan(concurrency=4)), case_with(first, second)
        assert judged(both, "load.environment")[2] == "mixed_deployments", "the trials ran on one node"
        assert one.plan == PLAN
        assert judged(one, "load.environment")[:2] == ("inconclusive", len(COMPLETE_ENVIRONMENT))
        alone = Case(PLAN, make_evidence((first, second), (), both.evidence.checkpoint), both.policy)
        assert judged(alone, "load.environment")[:2] == ("pass", 0)


class TestDeployment:
    PLANNED = DeploymentSpec(None, Parallelism(8, 2, 4, 32), "fp8", None, (RoleSpec("serve", RUNTIME),))
    SHOWN: ClassVar[dict[str, int | str]] = {
        "tensor_parallel_size": 8,
        "pipeline_parallel_size": 2,
        "data_parallel_size": 4,
        "expert_parallel_enabled": 1,
        "quantization": "fp8",
    }

    def case(self, **changes: int | str | None) -> Case:
        plan = build_plan(deployment=self.PLANNED)
        shown = self.SHOWN | changes
        rows = [(time, who, name, shown.get(name, value)) for time, who, name, value in LOG_ROWS]
        kept = [(time, who, name, value) for time, who, name, value in rows if value is not None]
        return case_with(make_log(plan, kept), plan=plan)

    def test_what_the_engine_shows_is_what_was_planned(self) -> None:
        assert judged(self.case(), "load.deployment") == ("pass", 0, None)
        assert judged(self.case(quantization="none", precision="torch.float8_e4m3fn"), "load.deployment")[0] == "fail"

    @pytest.mark.parametrize(
        ("metric", "value", "differing"),
        [
            ("tensor_parallel_size", 4, 2),  # and 4 × 4 experts' ranks instead of 32
            ("pipeline_parallel_size", 1, 1),
            ("data_parallel_size", 8, 2),
            ("expert_parallel_enabled", 0, 1),
            ("quantization", "none", 1),
            ("quantization", "awq", 1),
        ],
    )
    def test_each_value_that_differs_is_counted(self, metric: str, value: int | str, differing: int) -> None:
        assert judged(self.case(**{metric: value}), "load.deployment")[:2] == ("fail", differing)

    @pytest.mark.parametrize(
        ("metric", "value"),
        [
            ("pipeline_parallel_size", None),
            ("expert_parallel_enabled", None),
            ("quantization", "compressed-tensors"),
            ("quantization", "modelopt"),
        ],
    )
    def test_what_nothing_shows_is_inconclusive(self, metric: str, value: str | None) -> None:
        assert judged(self.case(**{metric: value}), "load.deployment") == ("inconclusive", 0, "deployment_not_observed")

    def test_an_environment_shows_it_too_and_contradicts(self) -> None:
        plan = build_plan(deployment=make_spec())
        agrees = make_environment(plan, (), fact("sharding", "tensor_parallel_size", "8"))
        assert judged(case_with(agrees, plan=plan), "load.deployment")[:2] == ("pass", 0)
        differs = make_environment(plan, (), fact("sharding", "tensor_parallel_size", "4"))
        assert judged(case_with(differs, make_log(plan), plan=plan), "load.deployment")[:2] == ("fail", 1)

    def test_a_plan_that_leaves_all_open_does_not_ask(self) -> None:
        spec = DeploymentSpec(None, Parallelism(None, None, None, None), None, None, (RoleSpec("serve", RUNTIME),))
        gate = next(g for g in build_plan(deployment=spec).validation_gates if g.id == "runtime_load")
        assert "load.deployment" not in [rule.id for rule in gate.criteria]
        assert "load.speculation" not in [rule.id for rule in gate.criteria]


class TestSpeculation:
    SPECULATING = but("speculation", "eagle")

    def test_every_trial_has_to_show_drafted_tokens(self) -> None:
        assert judged(drafted(40, 12, 30, rows=self.SPECULATING), "load.speculation")[:2] == ("pass", 12)
        assert judged(drafted(40, 0, 30, rows=self.SPECULATING), "load.speculation")[:2] == ("fail", 0)

    def test_without_counters_the_log_tells(self) -> None:
        rows = (*self.SPECULATING, (99 * S, "api-server", "draft_tokens", 77))
        assert judged(drafted(None, rows=rows), "load.speculation")[:2] == ("pass", 77)
        assert judged(drafted(None, rows=LOG_ROWS), "load.speculation")[:2] == ("fail", 0)
        assert judged(drafted(None, rows=self.SPECULATING), "load.speculation") == (
            "inconclusive",
            None,
            "speculation_not_observed",
        )


class TestSmoke:
    @pytest.mark.parametrize(
        "changes",
        [
            {"outcome": "late"},
            {"outcome": "error", "http_status": 500, "finish_reason": None, "output_tokens": None},
            {"finish_reason": None},
            {"output_tokens": 0},
            {"output_tokens": None},
            {"elapsed_ns": 60 * S + 1},
        ],
    )
    def test_what_is_no_whole_answer_in_time_fails(self, changes: dict[str, Any]) -> None:
        assert judged(case_with(make_smoke(PLAN, **changes)), "load.smoke")[:2] == ("fail", 1)
        both = case_with(make_smoke(PLAN), make_smoke(PLAN, **changes))
        assert judged(both, "load.smoke")[:2] == ("fail", 1), "a good answer does not make up for a bad one"

    def test_an_answer_at_the_deadline_counts(self) -> None:
        assert judged(case_with(make_smoke(PLAN, elapsed_ns=60 * S)), "load.smoke")[:2] == ("pass", 0)


def test_what_nobody_trusted_signed_never_passes_and_still_fails() -> None:
    stranger = {"signers": (STRANGER,)}
    records = [make_log(PLAN, **stranger), make_environment(PLAN, **stranger)]  # type: ignore[arg-type]
    verdict = case_with(*records).judge()
    for id in ("ready", "ready_time", "fatal_signatures", "environment", "deployment"):
        assert criterion_of(verdict, f"load.{id}").reason == "no_trusted_runner"
    rows = (*LOG_ROWS, (S, "x", "fatal_out_of_memory", 1))
    assert judged(case_with(make_log(PLAN, rows, **stranger)), "load.fatal_signatures")[0] == "fail"  # type: ignore[arg-type]


def test_an_imported_log_is_judged() -> None:
    """The importer's rows are the ones the judges look for."""
    text = (
        "(APIServer pid=1) INFO 03-01 09:00:05 [a.py:1] vLLM API server version 0.11.0\n"
        "(APIServer pid=1) INFO 03-01 09:00:06 [a.py:1] non-default args: {'tensor_parallel_size': 8}\n"
        "(EngineCore_DP0 pid=2) INFO 03-01 09:00:20 [core.py:1] Initializing a V1 LLM engine (v0.11.0) with config: "
        "speculative_config=None, dtype=torch.bfloat16, tensor_parallel_size=8, pipeline_parallel_size=1, "
        "data_parallel_size=1, quantization=None, kv_cache_dtype=auto\n"
        "(Worker_TP0 pid=3) INFO 03-01 09:00:30 [cuda.py:1] Using Flash Attention backend on V1 engine.\n"
        "(APIServer pid=1) INFO 03-01 09:01:40 [launcher.py:1] Route: /health\n"
        "(APIServer pid=1) INFO:     Application startup complete.\n"
        "(APIServer pid=1) INFO 03-01 23:00:00 [loggers.py:1] Engine 000: Running: 0 reqs, KV cache usage: 0.0%\n"
    )
    context = ObservationContext(plan_identity(PLAN), make_deployment())
    inputs = LogInputs(context, clock=LogClock(2026, 0), engine_start=ENGINE_START)
    made, _findings = import_vllm_log(text.encode(), inputs)
    assert isinstance(made.record.payload, EngineLog)
    path = made.record.attachments[0].path
    assert path is not None
    record = VerifiedRecord(
        made.record, made.digest, make_log(PLAN).signers, series=load_table(SERIES, made.files[path])
    )
    told = {"command", "container", "driver", "operating_system"}
    verdict = case_with(record, make_environment(PLAN, told), make_smoke(PLAN)).judge()
    assert gate_of(verdict, "runtime_load").outcome == "pass"
    assert criterion_of(verdict, "load.ready_time").observed == 101
