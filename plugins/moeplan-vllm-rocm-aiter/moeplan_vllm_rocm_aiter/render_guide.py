"""The operator's steps: what has to be there, in which order things are applied, and what proves that they work.

The words are in ``render_guide.json``, the commands are made here.
Infera's own preflight checks are among the first steps.
Source: Infera's recipe page for Kimi-K3 (optimized build), sections 1 to 5; its manual; facts R-RES, R-OPR, R-PH,
R-TIME, R-PD and R-SMK.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from moeplan_infera.preflight.hooks import checks
from moeplan_infera.rendering import PodGround

from moeplan.manifests.probes import PROBE_SECONDS, until_ended
from moeplan.model.plan import Plan
from moeplan.model.rendering import GuideStep
from moeplan_vllm_rocm_aiter.combos import combos
from moeplan_vllm_rocm_aiter.render_ground import Ground

__all__ = ["write_steps"]

_OPERATOR = "oci://docker.io/rocm/infera-operator"
_LOCAL_PORT = 18000
"""Unusual on purpose: where a port is taken the forward dies, and curl says nothing."""
_MOST_TITLE = 200
"""Characters that a step's title may have; a directory's name may be longer."""
_CHECKS = ("disk-space", "preflight-node", "preflight-fleet", "registration-mode")
_WORDS_TO_FILL = re.compile(r"\b(?:NODES?|MODEL_DIRECTORY|IMAGE|OVERLAY|DUMP)\b")
"""What stands in the commands of Infera's checks for something that only the site knows."""
_COUNT_DEVICES = (
    "import ctypes; lib = ctypes.CDLL('libibverbs.so.1'); lib.ibv_get_device_list.restype = ctypes.c_void_p; "
    "n = ctypes.c_int(); lib.ibv_get_device_list(ctypes.byref(n)); print(n.value)"
)


def write_steps(plan: Plan, ground: Ground) -> tuple[GuideStep, ...]:
    """Return the steps of the guide in their order."""
    return (*_before(plan, ground), *_deploy(ground), *_smoke(ground), *_proofs(ground))


@cache
def _words() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("moeplan_vllm_rocm_aiter").joinpath("render_guide.json").read_bytes())
    return found


def _step(key: str, *commands: str, seconds: int | None = None, **values: object) -> GuideStep:
    words = _words()[key]
    statement = "\n".join(words["statement"])
    if values:
        statement = statement.format_map(values)
    title = words["title"].format_map(values)
    title = title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 1]}…"
    return GuideStep(words["part"], title, statement, commands, seconds or words.get("deadlineSeconds"))


def _before(plan: Plan, ground: Ground) -> Iterator[GuideStep]:
    nodes = [pod.node for pod in ground.workers.values()]
    look = (*(f"kubectl describe node {node}" for node in nodes), "rocm-smi --showpids    # on each node")
    yield _step("free", *look, accelerators=ground.accelerators)
    yield _step(
        "operator",
        f"helm upgrade --install infera-operator {_OPERATOR} --version 0.1.0 -n infera-system --create-namespace",
        "kubectl -n infera-system wait deployment --all --for=condition=Available --timeout=300s",
        "kubectl get crd inferadeployments.infera.amd.com",
    )
    yield _step("alone", "kubectl get inferadeployments --all-namespaces")
    model, artifact = combos()["model"], plan.artifact
    get = f"hf download {artifact.repository} --revision {artifact.revision}"
    yield _step("target", *_downloads(get, ground, ground.target), target=ground.target, shards=model["shards"])
    if ground.draft is not None:
        get = f"hf download {model['draftRepository']}"
        yield _step(
            "draft", *_downloads(get, ground, ground.draft), draft=ground.draft, draftDigest=_draft_digest(plan)
        )
    if ground.is_pair:
        yield _step("fabric")
    yield from _preflight(ground)


def _preflight(ground: Ground) -> Iterator[GuideStep]:
    """Yield Infera's own checks of this profile that no other step covers, with the site's values in their commands."""
    for check in checks([ground.profile]):
        if check.id in _CHECKS and ground.profile in (check.profiles or (ground.profile,)):
            told = ". ".join(one for one in check.how.split(". ") if not _WORDS_TO_FILL.search(one)).rstrip(".")
            statement = f"{told}. All is well where: {check.proof}" if told else f"All is well where: {check.proof}"
            commands = dict.fromkeys(
                _with_values(line, pod, ground) for line in check.commands for pod in _pods(ground)
            )
            yield GuideStep("prerequisite", check.title, statement, tuple(commands), check.deadline_seconds)


def _pods(ground: Ground) -> Iterator[PodGround]:
    return iter(ground.workers.values())


def _with_values(command: str, pod: PodGround, ground: Ground) -> str:
    values = {
        "NODE": pod.node,
        "NODES": ",".join(one.node for one in _pods(ground)),
        "MODEL_DIRECTORY": shlex.quote(pod.model_directory),
        "IMAGE": pod.image,
        "OVERLAY": pod.overlay,
        "DUMP": "/var/tmp/moeplan-preflight",
    }
    return _WORDS_TO_FILL.sub(lambda found: values[found[0]], command)


def _downloads(get: str, ground: Ground, name: str) -> Iterator[str]:
    for pod in ground.workers.values():
        yield f"{get} --local-dir {shlex.quote(f'{pod.model_directory}/{name}')}    # on {pod.node}"


def _draft_digest(plan: Plan) -> str:
    root = plan.deployment.draft_checkpoint_root
    if root is None:
        return "The plan names no digest of the draft: nothing measured will be bound to one."
    return f"The plan wants the draft whose root digest is {root}."


def _deploy(ground: Ground) -> Iterator[GuideStep]:
    space, selector = ground.namespace, f"infera.amd.com/deployment={ground.name}"
    pods = f"kubectl -n {space} get pods -l {selector}"
    yield _step("namespace", "kubectl apply -f 10-namespace.yaml")
    yield _step("storage", *_probe(ground, "storage", "20-probe-storage.yaml"), seconds=PROBE_SECONDS)
    yield _step("node", *_probe(ground, "node", "21-probe-node.yaml"), seconds=PROBE_SECONDS)
    logs = 'kubectl -n infera-system logs "$pod" --tail=50'
    yield _step(
        "deployment",
        "kubectl apply -f 30-deployment.yaml",
        f"sleep 60; {pods}",
        f"for pod in $(kubectl -n infera-system get pods -o name); do {logs}; done",
    )
    seconds = ground.startup_seconds
    wait = f"kubectl -n {space} wait pod -l {selector} --for=condition=Ready --timeout={seconds}s"
    yield _step("ready", wait, pods, seconds=seconds)
    yield _step("monitoring", "kubectl apply -f 40-monitoring.yaml")


def _probe(ground: Ground, what: str, file: str) -> Iterator[str]:
    jobs = [f"job/{ground.name}-{what}-{service}" for service in ground.workers]
    here = f"kubectl -n {ground.namespace}"
    yield f"{here} delete --ignore-not-found {' '.join(jobs)}"
    yield f"kubectl apply -f {file}"
    yield until_ended(ground.namespace, " ".join(jobs))
    yield f"{here} get {' '.join(jobs)}"
    yield from (f"{here} logs {job}" for job in jobs)


def _smoke(ground: Ground) -> Iterator[GuideStep]:
    question = {"role": "user", "content": "Which city is the capital of France?"}
    request = json.dumps({"model": ground.served_name, "messages": [question], "max_tokens": 1024})
    url = f"http://localhost:{_LOCAL_PORT}/v1/chat/completions"
    forward = f"{_LOCAL_PORT}:{ground.server_port}"
    yield _step(
        "smoke",
        f"kubectl -n {ground.namespace} port-forward svc/{ground.name}-server {forward} & PF=$!",
        'sleep 3; kill -0 "$PF" || echo "the forward died: take another local port"',
        f"curl -sS --max-time 300 {url} -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(request)} | jq '.choices[0] | [.finish_reason, .message.content]'",
        'kill "$PF"',
    )
    if not ground.is_pair:
        yield _step("image")


def _proofs(ground: Ground) -> Iterator[GuideStep]:
    if ground.combination["image"] == "opt":
        counts = (f"{_log(ground, one)} | grep -c 'Unknown vLLM environment variable'" for one in ground.workers)
        yield _step("kernels", *counts)
    if ground.draft is not None:
        yield _step("speculation", *_speculation(ground))
    if ground.is_pair:
        wanted = "(External prefix cache hit rate|Avg prompt throughput): [0-9.]+"
        rates = (f"{_log(ground, one)} | grep -oE '{wanted}' | tail -4" for one in ("decode", "prefill"))
        yield _step("handoff", *rates)
        ask = f"-c main -- python3 -c {shlex.quote(_COUNT_DEVICES)}"
        yield _step(
            "devices", *(f"kubectl -n {ground.namespace} exec deploy/{ground.name}-{s} {ask}" for s in ground.workers)
        )
        yield _step("reference")


def _speculation(ground: Ground) -> Iterator[str]:
    for service in ground.workers:
        log = _log(ground, service)
        yield f"{log} | grep -c 'running the draft eagerly'"
        yield f"{log} | grep -o 'speculative_config=SpeculativeConfig([^)]*)' | tail -1"


def _log(ground: Ground, service: str) -> str:
    """Return the command for the log of one service's engines; the deployment's name is in it, or others' are read."""
    selector = f"infera.amd.com/deployment={ground.name},infera.amd.com/service={service}"
    return f"kubectl -n {ground.namespace} logs -c main --tail=-1 -l {selector}"
