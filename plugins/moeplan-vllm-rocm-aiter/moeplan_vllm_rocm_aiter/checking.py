"""Check: whether a plan can run on a site as one of the recipes' combinations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.version import Version

from moeplan.facts.judge import Hit, finding_of
from moeplan.facts.values import Place
from moeplan.manifests.versions import parse_version
from moeplan.model.plan import Plan
from moeplan.model.plugin import PluginFinding
from moeplan_vllm_rocm_aiter.facts import all_facts
from moeplan_vllm_rocm_aiter.placing import fit_faults
from moeplan_vllm_rocm_aiter.profiles import profiles
from moeplan_vllm_rocm_aiter.rules import is_gfx942, is_gfx950
from moeplan_vllm_rocm_aiter.shapes import GPUS_A_ROLE, MODELS, OVERLAY, Shape, shape_of

__all__ = ["check"]

_Found = Iterator[tuple[str, Hit]]
_REMOTE = ("nfs", "cifs", "smb", "lustre", "ceph", "fuse", "9p", "gluster", "beegfs")
_LOCAL = ("xfs", "ext4")
_OLD_KUBERNETES = Version("1.28")
_HIPFILE_DRIVER = Version("6.16.6")


def check(plan: Plan, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
    """Return what keeps the plan from running on the site as its profile, and what is not known of it."""
    profile = site.get("profile") or plan.deployment.profile
    shape = None if profile is None else shape_of(profile)
    hits = list(_hardware(plan, site))
    if profile is not None and shape is not None:
        for judged in (_status(profile), _model(plan, shape), _workload(plan, shape), _draft(plan, site, shape)):
            hits += judged
        for judged in (_storage(site, profile), _nodes(site, shape), _images(site, shape), _cluster(site, shape)):
            hits += judged
    found = (finding_of(all_facts()[fact], hit) for fact, hit in hits)
    return tuple(dict.fromkeys(finding for finding in found if finding is not None))


def _plan(path: str, message: str, severity: str | None = None) -> Hit:
    return Hit(Place("plan", path), message, None, severity)


def _at(path: str, message: str, severity: str | None = None) -> Hit:
    return Hit(Place("site", path), message, None, severity)


def _hardware(plan: Plan, site: Mapping[str, Any]) -> _Found:
    named = site.get("hardware")
    told, hit = (plan.target.hardware_id, _plan) if named is None else (str(named), _at)
    path = "$.target.hardwareId" if named is None else "$.hardware"
    if is_gfx942(told):
        yield "R-CHO-009", hit(path, f"the hardware is {told} (gfx942)")
    elif not is_gfx950(told):
        yield "R-CHO-004", hit(path, f"the hardware is {told}, not MI355X (gfx950)")


def _status(profile: str) -> _Found:
    known = next((one for one in profiles() if one.id == profile), None)
    if known is None or known.status == "measured":
        return
    message = f"{profile}: {known.statement}"
    if known.status == "reported_failing":
        fact = "R-ARG-007" if "dspark" in profile else "R-CHO-003"
        yield fact, _plan("$.deployment.profile", message, "error")
    elif profile.endswith("fp8-kv"):
        yield "R-CHO-003", _plan("$.deployment.profile", message)
    else:
        yield "R-CHO-011", _plan("$.deployment.profile", message)


def _model(plan: Plan, shape: Shape) -> _Found:
    if plan.artifact.model_id not in MODELS:
        yield "R-CHO-013", _plan("$.artifact.modelId", f"the model is {plan.artifact.model_id}, not Kimi-K3")
    size = plan.deployment.parallelism.tensor_parallel_size
    if size is not None and size != GPUS_A_ROLE:
        path = "$.deployment.parallelism.tensorParallelSize"
        yield "R-ARG-004", _plan(path, f"tensor-parallel size {size}; {GPUS_A_ROLE} a role were run")
    if plan.target.requested_accelerators < shape.gpus:
        told = f"{plan.target.requested_accelerators} accelerators, {shape.gpus} are needed"
        yield "R-ARG-004", _plan("$.target.requestedAccelerators", told)
    precision = plan.deployment.precision or ""
    if "kv" in precision and "fp8" in precision:
        yield "R-CHO-003", _plan("$.deployment.precision", f"precision {precision}: FP8 KV was not measured")


def _workload(plan: Plan, shape: Shape) -> _Found:
    tokens = plan.workload.input_tokens + plan.workload.output_tokens
    if shape.max_model_len is not None and tokens > shape.max_model_len:
        told = f"{tokens} tokens a request, --max-model-len is {shape.max_model_len}"
        yield "R-CHO-012", _plan("$.workload.inputTokens", told)
    if plan.workload.concurrency > shape.max_num_seqs:
        told = f"{plan.workload.concurrency} requests at once, --max-num-seqs is {shape.max_num_seqs} on one engine"
        yield "R-CHO-012", _plan("$.workload.concurrency", told, "warning")
    for told, severity in fit_faults(plan, shape):
        yield "R-CHO-014", _plan("$.workload.concurrency", told, severity)


def _draft(plan: Plan, site: Mapping[str, Any], shape: Shape) -> _Found:
    if not shape.draft:
        if plan.deployment.draft_checkpoint_root is not None:
            told = "the plan binds a draft checkpoint, and this combination serves none"
            yield "R-CHO-015", _plan("$.deployment.draftCheckpointRoot", told)
        return
    if plan.deployment.draft_checkpoint_root is None:
        told = "the plan binds no draft checkpoint, so nothing says which draft runs"
        yield "R-WT-002", _plan("$.deployment.draftCheckpointRoot", told, "warning")
    names = site.get("modelNames") or {}
    if names and names.get("draft") is None:
        yield "R-WT-002", _at("$.modelNames.draft", "the site does not name the draft's directory", "warning")


def _storage(site: Mapping[str, Any], profile: str) -> _Found:
    remote = None if profile.startswith("opt/") else "warning"
    stated = str(site.get("modelStorage", ""))
    if _is_remote(stated):
        yield "R-WT-003", _at("$.modelStorage", f"the model's storage is {stated}", remote)
    for index, node in enumerate(_listed(site)):
        storage = node.get("storage") or {}
        kind = str(storage.get("filesystem", ""))
        path = f"$.nodes[{index}].storage"
        if _is_remote(kind) or storage.get("local") is False:
            yield "R-WT-003", _at(path, f"{node['name']}: {kind or 'storage'} is not local", remote)
        elif kind and kind not in _LOCAL:
            yield "R-WT-003", _at(path, f"{node['name']}: {kind} is neither xfs nor ext4", "warning")
        if storage.get("mountPoint") == "/" and node.get("modelDirectory") not in (None, "/"):
            told = f"{node['name']}: the file system told is that of /, not of the directory as mounted"
            yield "R-WT-004", _at(f"{path}.mountPoint", told)


def _is_remote(kind: str) -> bool:
    return any(word in kind.lower() for word in _REMOTE)


def _listed(site: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    nodes = site.get("nodes")
    return [] if nodes is None or isinstance(nodes, int) else list(nodes)


def _serving(site: Mapping[str, Any], shape: Shape) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the nodes that serve: those with one of the shape's roles, or all where no roles are given."""
    nodes = list(enumerate(_listed(site)))
    wanted = {*shape.roles, "serve"}
    with_roles = [(index, node) for index, node in nodes if wanted & set(node.get("roles") or ())]
    return with_roles or [(index, node) for index, node in nodes if not node.get("roles")]


def _nodes(site: Mapping[str, Any], shape: Shape) -> _Found:
    count = site.get("nodes")
    serving = _serving(site, shape)
    have = count if isinstance(count, int) else len(serving)
    pair = len(shape.roles) > 1
    if count is not None and have < len(shape.roles):
        told = f"{have} nodes; {' and '.join(shape.roles)} need one each"
        yield ("R-PH-004" if pair else "R-RES-003"), _at("$.nodes", told)
    elif pair:
        for role in _roles_without_node(serving, shape):
            yield "R-PH-004", _at("$.nodes", f"no node has the role {role}")
    for index, node in serving:
        yield from _node(index, node, site)
    if pair:
        yield "R-PD-008", _at("$.nodes", "that both nodes reach each other over RoCE is not shown by a site", "info")


def _roles_without_node(serving: list[tuple[int, Mapping[str, Any]]], shape: Shape) -> Iterator[str]:
    given = {role for _, node in serving for role in node.get("roles") or ()}
    if given:
        yield from (role for role in shape.roles if role not in given)


def _node(index: int, node: Mapping[str, Any], site: Mapping[str, Any]) -> _Found:
    name, path = node["name"], f"$.nodes[{index}]"
    free, there = node.get("freeAccelerators"), node.get("accelerators", site.get("acceleratorsPerNode"))
    if free is not None and free < GPUS_A_ROLE:
        yield "R-RES-003", _at(f"{path}.freeAccelerators", f"{name} has {free} free accelerators")
    elif free is None and there is not None and there < GPUS_A_ROLE:
        yield "R-RES-003", _at(f"{path}.accelerators", f"{name} has {there} accelerators")
    elif free is None:
        told = f"how many accelerators of {name} are free is not known"
        yield "R-RES-003", _at(f"{path}.freeAccelerators", told, "info")
    if node.get("unschedulable"):
        yield "R-RES-003", _at(f"{path}.unschedulable", f"{name} takes no Pods")
    for number, taint in enumerate(node.get("taints") or ()):
        if taint["effect"] != "PreferNoSchedule" and not _tolerated(taint, site.get("tolerations") or ()):
            told = f"{name} has the taint {taint['key']}:{taint['effect']}, which nothing tolerates"
            yield "R-RES-003", _at(f"{path}.taints[{number}]", told)
    model = node.get("acceleratorModel")
    if model is not None and not is_gfx950(model):
        yield "R-CHO-004", _at(f"{path}.acceleratorModel", f"{name} has {model}")


def _tolerated(taint: Mapping[str, Any], tolerations: Any) -> bool:
    return any(_tolerates(one, taint) for one in tolerations)


def _tolerates(one: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Return whether a toleration fits a taint. Source: Kubernetes, Taints and Tolerations."""
    if one.get("effect") not in (None, taint["effect"]) or one.get("key") not in (None, taint["key"]):
        return False
    return one.get("operator") == "Exists" or (one.get("value") or "") == (taint.get("value") or "")


def _images(site: Mapping[str, Any], shape: Shape) -> _Found:
    for name, reference in (site.get("images") or {}).items():
        overlay = "overlay" in name
        wanted, fact = (OVERLAY, "R-IMG-003") if overlay else (shape.image, shape.image_fact)
        if not reference.endswith("@" + wanted) and (overlay or name in (*shape.roles, *_ENGINE_IMAGES)):
            yield fact, _at(f"$.images.{name}", f"image {name} is {reference}")


_ENGINE_IMAGES = ("engine", "server", "serve", "main", "worker", "kvd")


def _cluster(site: Mapping[str, Any], shape: Shape) -> _Found:
    stated = (site.get("kubernetes") or {}).get("version")
    version = parse_version(stated.split("+")[0]) if isinstance(stated, str) else None
    if version is not None and version < _OLD_KUBERNETES:
        yield "R-CHO-005", _at("$.kubernetes.version", f"Kubernetes is {stated}")
    if not shape.kvd:
        return
    for index, node in enumerate(_listed(site)):
        driver = parse_version(node.get("driver"))
        if driver is not None and driver < _HIPFILE_DRIVER:
            yield "R-CHO-006", _at(f"$.nodes[{index}].driver", f"{node['name']}: the amdgpu driver is {node['driver']}")
