"""A plugin for SGLang on MI355X, on the shared rooms alone: what it takes to write one. The tests install it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from moeplan_infera.derived import DERIVED
from moeplan_infera.facts import infera_facts
from moeplan_infera.programs import infera_programs, infera_role
from moeplan_infera.registered import RULES

from moeplan.facts.fields import parse_field
from moeplan.facts.judge import Hit, judge
from moeplan.facts.launches import Knowledge, Program, Scene, Subject, read_scene
from moeplan.facts.model import FactSet, load_facts
from moeplan.hooks.specs import hookimpl
from moeplan.manifests.argument_table import ArgumentTable, parse_argument_table
from moeplan.model.plan import Plan
from moeplan.model.plugin import FactSource, LogSignature, PluginFinding, Profile, RuntimeInfo, SiteNeed
from moeplan.model.rendering import LintRequest

MOEPLAN_API = 1
NAME = "sglang-mi355x"
VERSION = "0.1.0"
ORIGIN = "moeplan-sglang-mi355x"
PROFILE = "stock/disaggregated-sglang"
_RECIPE = FactSource("AMD-AGI/Infera@5890f7f examples/recipes/kimi-k3/disaggregated-sglang/deploy.yaml", "header")

OWN_FACTS = [
    {
        "id": "SGL-DP-001",
        "title": "attention runs data parallel over other ranks than the rest",
        "kind": "compat",
        "severity": "warning",
        "silent": "yes",
        "basis": "reported",
        "when": {"field": "argument --enable-dp-attention", "is": True},
        "violated": {
            "all": [
                {"field": "argument --data-parallel-size", "present": True},
                {
                    "field": "argument --data-parallel-size",
                    "is-not": {"field": "argument --tensor-parallel-size", "default": "1"},
                },
            ]
        },
        "message": "--dp-size {argument --data-parallel-size} with --tp-size {argument --tensor-parallel-size}",
        "consequence": "Ranks without requests return early while others wait in an all-reduce: it hangs, GPUs busy.",
        "remedy": "--dp-size as large as --tp-size.",
        "sources": [{"source": "sgl-project/sglang#28915"}],
    },
    {
        "id": "SGL-MLA-001",
        "title": "attention heads of a rank that AITER has no kernel for",
        "kind": "compat",
        "severity": "error",
        "silent": "no",
        "basis": "reported",
        "consequence": "The first decode step ends the server: older AITER knows 16 or 128 heads a rank.",
        "remedy": "A --tp-size that gives 16 heads a rank (4 for Kimi-K2), or a newer AITER.",
        "sources": [{"source": "ROCm/aiter#726"}],
        "logs": [{"literals": ["Aiter MLA only supports 16 or 128 number of heads"], "expectation": "informs"}],
    },
    {
        "id": "SGL-PD-001",
        "title": "a rail whose other end cannot be reached",
        "kind": "preflight",
        "severity": "error",
        "silent": "no",
        "basis": "reported",
        "consequence": "Mooncake gives up one NIC after another, and the hand-over of KV cache stops.",
        "remedy": "Name only devices that reach each other.",
        "sources": [{"source": "sgl-project/sglang#21395"}],
        "logs": [
            {"literals": ["transport retry counter exceeded"], "expectation": "informs"},
        ],
    },
    {
        "id": "SGL-PD-002",
        "title": "a peer came back on the same address",
        "kind": "procedure",
        "severity": "error",
        "silent": "no",
        "basis": "reported",
        "consequence": "NIXL keeps the endpoint of the old process, UCX fails on it and prefill ends with a fault.",
        "remedy": "Restart the other role as well.",
        "sources": [{"source": "smg-project/smg#2503"}],
        "logs": [{"pattern": r"mlx5dv_devx_obj_modify\(opcode=0x[0-9a-f]+\) failed", "expectation": "informs"}],
    },
    {
        "id": "SGL-HEADS-001",
        "title": "heads of Kimi-K2 on a rank that AITER has no kernel for",
        "kind": "compat",
        "severity": "warning",
        "silent": "no",
        "basis": "reported",
        "at": "argument --tensor-parallel-size",
        "consequence": "The first decode step ends the server.",
        "remedy": "--tp-size 4, or an AITER that has the kernel.",
        "sources": [{"source": "ROCm/aiter#726"}],
    },
]
"""Facts of SGLang that no shared library has."""
_HEADS = {"kimi-k2": 64}
"""Attention heads. Source: moonshotai/Kimi-K2-Instruct, config.json."""
_ENGINE = "infera.engine.sglang"
_SHARED = (_ENGINE, "infera.server")
_OWN = re.compile(r"infera\.engine\.sglang|sglang\.launch_server|\bsglang serve\b|\bsglang-rocm\b")
_OTHERS = re.compile(r"nvidia\.com/gpu|--gpus[= ]|\bCUDA_VISIBLE_DEVICES|infera\.engine\.vllm|vllm-openai")


@cache
def facts() -> FactSet:
    """Return Infera's facts, those of SGLang among them, and this plugin's own."""
    return load_facts(json.dumps(OWN_FACTS).encode(), ORIGIN).joined(infera_facts())


@cache
def knowledge() -> Knowledge:
    """Return Infera's programs and SGLang's own start, which takes the same arguments and one more."""
    shared = {program.name: program for program in infera_programs(ArgumentTable(()))}
    more = parse_argument_table([{"name": "--enable-dp-attention", "kind": "flag"}])
    table = ArgumentTable(shared[_ENGINE].table.specs + more.specs)
    words = tuple((python, "-m", "sglang.launch_server") for python in ("python3", "python"))
    plain = Program("sglang", "engine", (*words, ("sglang", "serve")), table, bare=True)
    return Knowledge(
        programs=(*(shared[name] for name in _SHARED), plain),
        role=infera_role,
        profile=_profile,
        derived=dict(DERIVED),
    )


def _profile(scene: Scene) -> str | None:
    """Return the recipe's profile for a pair that Infera starts; of anything else nothing is said."""
    roles = {one.role for one in scene.engines() if one.program is not None and one.program.name == _ENGINE}
    return PROFILE if {"prefill", "decode"} <= roles else None


def _heads(scene: Scene) -> Iterator[Hit]:
    for engine in scene.engines():
        size, backend = (engine.look(parse_field(f"argument --{name}")) for name in ("tensor-parallel-size", _BACKEND))
        heads = _heads_of(engine)
        text = str(size.value)
        if heads is None or backend.value != "aiter" or not text.isdigit() or not int(text) or heads % int(text):
            continue
        if (each := heads // int(text)) not in (16, 128):
            yield Hit(size.place or engine.place(), f"{each} heads a rank with --tp-size {text}", engine)


_BACKEND = "attention-backend"


def _heads_of(engine: Subject) -> int | None:
    name = (engine.model_reference or "").rstrip("/").rpartition("/")[2].lower()
    return next((heads for model, heads in _HEADS.items() if name.startswith(model)), None)


@hookimpl
def moeplan_runtime() -> RuntimeInfo:
    """Say what the plugin is."""
    needs = (
        SiteNeed(key="namespace", title="The namespace to deploy to", how="kubectl get namespaces", example="infera"),
        SiteNeed(key="network.rdmaDevices", title="RDMA devices", how="moeplan site probe, on each node"),
    )
    profile = Profile(
        id=PROFILE,
        title="Kimi-K3, prefill and decode apart",
        status="recipe_only",
        statement="The recipe deploys it, text only and with 32 Ki tokens of context; no figures are known.",
        sources=(_RECIPE,),
        site_needs=needs,
        nodes=2,
        accelerators=16,
        speculation="no",
    )
    return RuntimeInfo("sglang", "amd", NAME, VERSION, (profile,), facts().rules())


@hookimpl
def moeplan_check(plan: Plan, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Say that a draft crashes the only image that knows the model."""
    if plan.deployment.draft_checkpoint_root is None:
        return ()
    fact = facts()["R-LOG-012"]
    told = PluginFinding(
        id=fact.id,
        severity=fact.severity,
        path="$.deployment.draftCheckpointRoot",
        file="plan",
        message="the plan has a draft",
        consequence=fact.consequence,
        silent=fact.silent,
        remedy=fact.remedy,
        sources=fact.sources,
    )
    return (told,)


@hookimpl
def moeplan_owns_manifest(manifest: Mapping[str, Any] | str) -> bool | None:
    """Say whether a manifest or script runs SGLang on AMD accelerators."""
    text = manifest if isinstance(manifest, str) else repr(manifest)
    if not _OWN.search(text):
        return None
    return not _OTHERS.search(text)


@hookimpl
def moeplan_lint(request: LintRequest, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Hold manifests and scripts against the facts."""
    scene = read_scene(request.sources, knowledge(), site, request.profile)
    return judge(scene, facts(), {**RULES, "SGL-HEADS-001": _heads})


@hookimpl
def moeplan_log_signatures() -> tuple[LogSignature, ...]:
    """Say which log lines mean what."""
    return facts().log_signatures()
