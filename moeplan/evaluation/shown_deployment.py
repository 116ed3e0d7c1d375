"""The values of the plan's deployment block that logs and environments show, and where they differ from it."""

from __future__ import annotations

from moeplan.evaluation.engine_logs import log_numbers, log_words
from moeplan.evaluation.evidence_state import State
from moeplan.model.deployment import DeploymentSpec
from moeplan.model.observations import Environment
from moeplan.model.verified import VerifiedRecord

__all__ = ["deployment_differences", "planned_parts"]

_SIZES = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
_OTHER_WORDS = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "half": "float16",
    "fp32": "float32",
    "float": "float32",
    "modelopt_fp4": "nvfp4",
    "nvfp4a16": "nvfp4",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "ptpc_fp8": "fp8",
    "fbgemm_fp8": "fp8",
}
"""Other words for a precision."""
_CONTAINERS = (
    "compressed-tensors",
    "modelopt",
    "modelopt_mixed",
    "quark",
    "auto-round",
    "inc",
    "gguf",
    "humming",
    "torchao",
)
"""Formats that hold weights of several precisions, so that the word tells none. Source: vLLM documentation,
"Quantization"."""


def planned_parts(spec: DeploymentSpec) -> dict[str, int | str]:
    """Return the parts of a deployment block that are decided and that an engine can show."""
    sizes = spec.parallelism
    parts: dict[str, int | str | None] = {
        "tensor_parallel_size": sizes.tensor_parallel_size,
        "pipeline_parallel_size": sizes.pipeline_parallel_size,
        "data_parallel_size": sizes.data_parallel_size,
        "expert_parallel_size": sizes.expert_parallel_size,
        "precision": None if spec.precision is None else _word(spec.precision),
    }
    return {name: value for name, value in parts.items() if value is not None}


def deployment_differences(state: State, records: tuple[VerifiedRecord, ...]) -> tuple[int, int]:
    """Return how many planned parts the engine shows otherwise, and how many nothing shows."""
    differing = unseen = 0
    for name, planned in planned_parts(state.plan.deployment).items():
        shown = set().union(*(_shown(item, name) for item in records)) if records else set()
        differing += any(value != planned for value in shown)
        unseen += not shown
    return differing, unseen


def _shown(item: VerifiedRecord, name: str) -> set[int | str]:
    if isinstance(item.record.payload, Environment):
        return _of_environment(item.record.payload, name)
    if name == "expert_parallel_size":
        return _expert_parallel(item)
    if name == "precision":
        return _precisions(log_words(item, "precision"), log_words(item, "quantization"))
    return set(log_numbers(item, name))


def _of_environment(environment: Environment, name: str) -> set[int | str]:
    facts = {fact.name: fact.value for fact in environment.facts if fact.part in ("sharding", "precision")}
    if name == "precision":
        words = [{facts[key]} if key in facts else set() for key in ("precision", "quantization")]
        return _precisions(*words)
    value = facts.get(name, "")
    return {int(value)} if value.isascii() and value.isdigit() and len(value) < 10 else set()


def _expert_parallel(item: VerifiedRecord) -> set[int | str]:
    """Return the sizes that the switch and the other sizes give: experts are spread over all ranks of TP and DP.

    Source: vLLM documentation, "Expert Parallel Deployment": EP size = TP size × DP size.
    """
    switch, tensor, data = (
        log_numbers(item, metric)
        for metric in ("expert_parallel_enabled", "tensor_parallel_size", "data_parallel_size")
    )
    if not switch:
        return set()
    off: set[int | str] = {1} if 0 in switch else set()
    return off.union(a * b for a in tensor for b in data if 1 in switch)


def _precisions(types: set[str], quantizations: set[str]) -> set[int | str]:
    """Return the precision of the weights as served: the quantization where there is one, else the type."""
    real = {word for word in quantizations if word.lower() not in ("none", "")}
    if not real:
        return {_word(word) for word in types}
    plain: set[int | str] = {_word(word) for word in types if real < quantizations}
    return plain.union(_word(word) for word in real if word.lower() not in _CONTAINERS)


def _word(text: str) -> str:
    plain = text.lower().removeprefix("torch.")
    return _OTHER_WORDS.get(plain, plain)
