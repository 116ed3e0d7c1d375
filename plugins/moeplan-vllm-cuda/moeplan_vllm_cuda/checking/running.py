"""The arguments that will run for a plan, and the facts held against them as against a script."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from moeplan_vllm.families import family_of
from moeplan_vllm.placement import Placed

from moeplan.errors import InputRefusedError, Issue
from moeplan.facts.judge import judge
from moeplan.facts.launches import read_scene
from moeplan.facts.model import FactSet
from moeplan.model.plan import Plan
from moeplan.model.plugin import PluginFinding
from moeplan.model.rendering import ManifestSource
from moeplan_vllm_cuda.checking.findings import found
from moeplan_vllm_cuda.gpus import find_gpu
from moeplan_vllm_cuda.knowledge import cuda_facts, knowledge
from moeplan_vllm_cuda.profiles import known_status
from moeplan_vllm_cuda.rendering.options import Options, engine_options, memory_settings
from moeplan_vllm_cuda.rendering.placing import place_roles, shortages
from moeplan_vllm_cuda.rendering.ranks import rank_arguments, size_arguments
from moeplan_vllm_cuda.rendering.sizes import Sizes, profile_data, sizes_of
from moeplan_vllm_cuda.rendering.words import serve_words
from moeplan_vllm_cuda.rules.registered import RULES

__all__ = ["Running", "check_running", "place_running", "running_of"]

_OF_PLANS: tuple[str, ...] = ("C-DIV-", "C-MEM-", "C-MOE-", "C-ATT-", "C-K3-", "C-DS-", "C-GLM-", "C-OSS-", "C-QW-")
_OF_PLANS += (
    "C-INK-",
    "C-VLM-",
    "C-SPC-",
    "C-SCH-",
    "C-PD-006",
    "C-PD-019",
    "C-PD-020",
    "C-ENV-008",
    "C-ENV-009",
    "C-NET-008",
    "C-NET-011",
)
"""Facts that model, sizes, accelerator and arguments decide; the others need the manifests, which lint reads."""
_PORTS = {"master": 29501, "rpc": 13345}
"""No fact that is held here depends on them."""
_SIZES = "$.deployment.parallelism"


@attrs.frozen
class Running:
    """What will run: the engine's sizes, and each role's options."""

    sizes: Sizes
    options: Mapping[str, Options]


def running_of(plan: Plan, site: Mapping[str, Any], profile: str) -> tuple[Running | None, list[PluginFinding]]:
    """Return what will run, or the findings that say why nothing does."""
    gpu = find_gpu(plan.target.hardware_id)
    if gpu is None:
        message = f"{plan.target.hardware_id} is no NVIDIA GPU that this plugin knows"
        return None, [found("V-PLAN-006", "plan", "$.target.hardwareId", message)]
    try:
        sizes = sizes_of(plan, profile)
    except InputRefusedError as error:
        return None, [found("V-PLAN-001", "plan", issue.path, _said(issue)) for issue in error.issues]
    names = site.get("modelNames")
    draft = names.get("draft") if isinstance(names, Mapping) else None
    mounted = None if plan.deployment.draft_checkpoint_root is None else f"/models/{draft or 'draft'}"
    options, findings = {}, []
    for role in profile_data(profile)["roles"]:
        try:
            options[role] = engine_options(
                plan, gpu, sizes, role, draft=mounted, ready_seconds=site.get("expectedReadySeconds")
            )
        except InputRefusedError as error:
            findings += [found(_fact_of(issue.code), "plan", issue.path, _said(issue)) for issue in error.issues]
    return (None if findings else Running(sizes, options)), list(dict.fromkeys(findings))


def _fact_of(code: str) -> str:
    return {"workload_too_large": "V-PLAN-003", "draft_with_stages": "C-SPC-001"}.get(code, "V-PLAN-001")


def _said(issue: Issue) -> str:
    return issue.message + (f"; expected: {issue.expected}" if issue.expected else "")


def check_running(plan: Plan, site: Mapping[str, Any], profile: str, running: Running) -> Iterator[PluginFinding]:
    """Yield what facts, limits and placement say of the arguments that will run."""
    yield from _judged(plan, site, profile, running)
    yield from _limits(plan, running)
    yield from _placed(plan, profile, running)


def _judged(plan: Plan, site: Mapping[str, Any], profile: str, running: Running) -> Iterator[PluginFinding]:
    sources = tuple(
        ManifestSource(role, _command(plan, profile, running.sizes, options))
        for role, options in running.options.items()
    )
    known = {"hardware": plan.target.hardware_id, "acceleratorsPerNode": plan.target.accelerators_per_node}
    known |= {key: site[key] for key in ("engineVersion", "expectedReadySeconds") if key in site}
    known["nodes"] = running.sizes.nodes * len(running.options)
    facts = FactSet("moeplan-vllm-cuda", tuple(one for one in cuda_facts().facts if one.id.startswith(_OF_PLANS)))
    for finding in judge(read_scene(sources, knowledge(), known, profile), facts, RULES):
        path = _SIZES if finding.id.startswith(("C-DIV-", "C-MEM-")) else "$.deployment"
        yield attrs.evolve(finding, file="plan", path=path, line=None, column=None)


def _command(plan: Plan, profile: str, sizes: Sizes, options: Options) -> str:
    """Return the command of a role's first node; node addresses and interfaces are the manifests' part."""
    balance = profile_data(profile).get("balance")
    ranks = rank_arguments(sizes, balance, _PORTS, leader=True, master="leader", rank="0", start="0")
    arguments = {**options.arguments, **size_arguments(sizes), **ranks}
    words = serve_words(plan.artifact.repository, arguments)
    settings = [f"{name}={shlex.quote(value)}" for name, value in options.environment.items()]
    return " ".join((*settings, *(shlex.quote(word) for word in words)))


def _limits(plan: Plan, running: Running) -> Iterator[PluginFinding]:
    load, data = plan.workload, running.sizes.layout.data
    for role, options in running.options.items():
        length = int(options.arguments["--max-model-len"])
        if load.input_tokens + load.output_tokens > length:
            message = f"{role}: {load.input_tokens} + {load.output_tokens} tokens and --max-model-len {length}"
            yield found("V-PLAN-003", "plan", "$.workload", message)
        sequences = int(options.arguments["--max-num-seqs"])
        if load.concurrency > sequences * data:
            message = f"{role}: {load.concurrency} requests in flight, --max-num-seqs {sequences} on {data} rank(s)"
            yield found("V-PLAN-003", "plan", "$.workload.concurrency", message)


def place_running(plan: Plan, running: Running) -> Mapping[str, Placed]:
    """Return each role placed with the arguments that will run."""
    settings = {role: memory_settings(plan, options) for role, options in running.options.items()}
    return place_roles(plan, running.sizes.layout, settings)


def _placed(plan: Plan, profile: str, running: Running) -> Iterator[PluginFinding]:
    placed = place_running(plan, running)
    short = set()
    for fact, issue in shortages(plan, placed):
        short.add(issue.message.partition(":")[0])
        yield found(fact, "plan", issue.path, *_against(plan, profile, issue.message))
    for role, one in placed.items():
        fitting = one.role.concurrent_requests
        if role not in short and fitting.value is not None and fitting.value < plan.workload.concurrency:
            message = f"{role}: the cache holds {fitting.value} requests ({fitting.certainty})"
            message += f", {plan.workload.concurrency} are in flight"
            yield found("V-PLAN-004", "plan", "$.workload.concurrency", message)


def _against(plan: Plan, profile: str, message: str) -> tuple[str, str | None]:
    """Return a calculated shortage with its severity: a warning where the recipe says that the layout runs."""
    gpu = find_gpu(plan.target.hardware_id)
    known = known_status(profile, family_of(plan.artifact.repository), None if gpu is None else gpu.id)
    if known is None or known["status"] == "reported_failing":
        return message, None
    return f"{message}; against that, {known['statement']}", "warning"
