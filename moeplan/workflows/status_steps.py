"""The command that gets one type of evidence for a plan, and about how many minutes it takes."""

from __future__ import annotations

from collections.abc import Callable

from moeplan.model.plan import Plan
from moeplan.units import ceil_div

__all__ = ["step_for"]

_HASHED_BYTES_PER_MINUTE = 60 * 2_000_000_000
"""Two gigabytes a second: SHA-256 on two cores with instructions for it. A slower disk takes longer."""
_PHASE_MINUTES = 2
"""Idle and warm, a minute each, beside the load itself."""
_TRIALS = 3
_COMMON = "--plan plan.json --checkpoint checkpoint.json"


def step_for(plan: Plan, kind: str) -> tuple[str, int]:
    """Return command and minutes for evidence of one type.

    What the plan knows is filled in; words in capitals are the reader's to give. Minutes are rounded up and count the
    measurement alone: trials take the requests that a bound on the quantile needs, at exactly the plan's targets.
    """
    made = _STEPS.get(kind)
    return ("this release has no command for it", 0) if made is None else made(plan)


def _runtime(plan: Plan) -> str:
    identity = next((role.runtime for role in plan.deployment.roles if role.runtime is not None), None)
    if identity is None:
        return "--runtime-image DIGEST"
    return f"--runtime-{'image' if identity.form == 'oci_image' else 'packages'} {identity.digest}"


def _stated(plan: Plan) -> str:
    return f"{_COMMON} {_runtime(plan)} --serving-node NODE"


def _manifest(plan: Plan) -> tuple[str, int]:
    artifact = plan.artifact
    named = f"--repository {artifact.repository} --revision {artifact.revision}"
    return f"moeplan checkpoint digest DIR {named} -o checkpoint.json", _hashing(plan)


def _hashing(plan: Plan) -> int:
    return max(1, ceil_div(plan.residency.tensor_bytes or 0, _HASHED_BYTES_PER_MINUTE))


def _digest(plan: Plan) -> tuple[str, int]:
    command = f"moeplan checkpoint digest DIR --record digest --tensors --node NODE --plan plan.json {_runtime(plan)}"
    return f"{command} --serving-node NODE -o checkpoint.json", _hashing(plan)


def _trial_minutes(plan: Plan) -> int:
    needs = [item.samples.seconds for gate in plan.validation_gates for item in gate.criteria if item.samples]
    return max(1, ceil_div(_TRIALS * max(needs, default=60), 60))


def _trials(plan: Plan) -> tuple[str, int]:
    load = plan.workload
    shape = f"--input-tokens {load.input_tokens} --output-tokens {load.output_tokens} --concurrency {load.concurrency}"
    command = f"moeplan collect endpoint --url URL --tokenizer DIR {shape} --trials {_TRIALS} {_stated(plan)} -o trials"
    return command, _trial_minutes(plan)


def _memory(plan: Plan) -> tuple[str, int]:
    return f"moeplan collect metrics --endpoint URL {_stated(plan)} -o memory", _PHASE_MINUTES + _trial_minutes(plan)


def _counts(plan: Plan) -> tuple[str, int]:
    start = ceil_div(plan.objectives.ready_within_seconds, 60)
    command = f"moeplan import probe PROBE-DIR --metrics BEFORE AFTER {_stated(plan)} -o experts"
    return f"{command}  # of a start with MOEPLAN_PROBE_COUNT=1", start + _trial_minutes(plan)


def _failure(plan: Plan) -> tuple[str, int]:
    command = f"moeplan collect restart --url URL --pid PID --restart-command COMMAND {_stated(plan)} -o restart --yes"
    return command, 1 + ceil_div(plan.objectives.ready_within_seconds, 60)


def _price(plan: Plan) -> tuple[str, int]:
    priced = f"--accelerators {plan.target.requested_accelerators} --currency CODE --per-accelerator-hour AMOUNT"
    return f"moeplan import price {priced} --dated DATE --source TEXT {_stated(plan)} -o price", 1


def _loaded(plan: Plan) -> tuple[str, int]:
    return f"moeplan import probe PROBE-DIR {_stated(plan)} -o loaded  # of a start with MOEPLAN_PROBE_HASH=1", 1


def _short(command: str) -> Callable[[Plan], tuple[str, int]]:
    return lambda plan: (f"moeplan {command.format(stated=_stated(plan))}", 1)


_STEPS: dict[str, Callable[[Plan], tuple[str, int]]] = {
    "checkpoint_manifest": _manifest,
    "checkpoint_digest": _digest,
    "loaded_bytes": _loaded,
    "serving_trial": _trials,
    "memory_series": _memory,
    "expert_counts": _counts,
    "failure_timeline": _failure,
    "engine_log": _short("import vllm-log SERVE.LOG {stated} -o log"),
    "environment": _short("collect environment --pid PID --node NODE {stated} -o environment"),
    "smoke": _short("collect smoke --url URL {stated} -o smoke"),
    "communication_trace": _short("import torch-trace TRACE.json {stated} -o trace"),
    "price": _price,
    "quality_result": _short("import lm-eval RESULTS.json SAMPLES.jsonl {stated} -o quality"),
}
