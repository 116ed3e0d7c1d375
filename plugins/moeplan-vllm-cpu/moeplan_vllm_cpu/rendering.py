"""The engine as a script, as ``docker run`` and as a Deployment, with the guide; none of them asks for a GPU."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from moeplan.errors import InputRefusedError, Issue
from moeplan.manifests.docker_run import bind_mount
from moeplan.manifests.write import dump_documents
from moeplan.model.plan import Plan
from moeplan.model.rendering import GuideStep, RenderedFile, Rendering
from moeplan_vllm_cpu.checking import KV_GIB, check, ranks
from moeplan_vllm_cpu.rules import GIB, KV_SPACE

__all__ = ["render"]

_PORT = 8000
_BLOCK = 128
"""Tokens of a KV block on CPUs. Source: server_info of vLLM 0.32.0 on a CPU host, cache_config.block_size."""
_PROCESS_GIB = 4
"""GiB beside weights and KV cache. An estimate: interpreter, compiled code and activations of a small model."""
_STARTUP_SECONDS = 1800
"""Until the engine answers. The recorded start took 45 s, 24 of them compiling; a larger model reads for longer."""


@attrs.frozen(kw_only=True)
class _Ground:
    """What plan and site say, read once; ``image`` and ``namespace`` are None where the site has none."""

    name: str
    served: str
    node: str
    directory: str
    target: str
    port: int
    image: str | None
    namespace: str | None
    ranks: int
    context: int
    sequences: int
    memory_gib: int

    def arguments(self, model: str) -> list[str]:
        """Return the words of ``vllm serve``."""
        return [
            "serve", model,
            "--served-model-name", self.served,
            "--port", str(self.port),
            "--dtype", "bfloat16",
            "--max-model-len", str(self.context),
            "--max-num-seqs", str(self.sequences),
            "--tensor-parallel-size", str(self.ranks),
        ]  # fmt: skip


def render(plan: Plan, site: Mapping[str, Any]) -> Rendering:
    """Return the files and the guide: a script always, the rest where the site names image and namespace.

    Raises:
        InputRefusedError: a value that all of them need is missing, or the plan does not fit the profile.
    """
    ground = _read(plan, site)
    files = [RenderedFile("serve.sh", "script", _script(ground))]
    if ground.image is not None:
        files.append(RenderedFile("docker-run.sh", "script", _docker(ground, ground.image)))
        if ground.namespace is not None:
            text = dump_documents(_objects(ground, ground.image, ground.namespace))
            files.append(RenderedFile("10-engine.yaml", "manifest", text))
    return Rendering(tuple(files), tuple(_steps(ground)))


def _read(plan: Plan, site: Mapping[str, Any]) -> _Ground:
    nodes = site.get("nodes")
    node = nodes[0] if isinstance(nodes, list | tuple) and nodes else {}
    names = site.get("modelNames") or {}
    wanted = (
        ("servedModelName", site.get("servedModelName")),
        ("nodes[0].name", node.get("name")),
        ("nodes[0].modelDirectory", node.get("modelDirectory")),
        ("modelNames.target", names.get("target")),
    )
    issues = [
        Issue(f"$.{key}", "site_value_missing", "not given", next=f"write {key}") for key, value in wanted if not value
    ]
    issues += [
        Issue(finding.path, finding.id, finding.message, next=finding.remedy)
        for finding in check(plan, site)
        if finding.severity == "error"
    ]
    if issues:
        raise InputRefusedError(*issues)
    weights = -(-(plan.residency.tensor_bytes or 0) // GIB)
    return _Ground(
        name=_object_name(plan.artifact.model_id),
        served=site["servedModelName"],
        node=node["name"],
        directory=node["modelDirectory"],
        target=names["target"],
        port=(site.get("ports") or {}).get("engine", _PORT),
        image=(site.get("images") or {}).get("engine"),
        namespace=site.get("namespace"),
        ranks=ranks(plan),
        context=-(-(plan.workload.input_tokens + plan.workload.output_tokens) // _BLOCK) * _BLOCK,
        sequences=plan.workload.concurrency,
        memory_gib=weights + KV_GIB * ranks(plan) + _PROCESS_GIB,
    )


def _object_name(model: str) -> str:
    """Return a model's id as a name of objects. Source: RFC 1123, section 2.1."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in model.lower())[:40].strip("-")
    return f"{plain or 'model'}-cpu" if plain[:1].isalpha() else f"m-{plain}-cpu"


def _lines(words: list[str]) -> str:
    """Return a command with each option on a line of its own."""
    text = ""
    for word in words:
        quoted = shlex.quote(word)
        text += f" \\\n  {quoted}" if quoted.startswith("-") else f" {quoted}"
    return text.strip() + "\n"


def _script(ground: _Ground) -> str:
    model = f"{ground.directory.rstrip('/')}/{ground.target}"
    head = f"#!/bin/sh\nset -eu\nexport {KV_SPACE}={KV_GIB}\nexport HF_HUB_OFFLINE=1\n"
    return head + "exec " + _lines(["vllm", *ground.arguments(model)])


def _docker(ground: _Ground, image: str) -> str:
    words = [
        "docker", "run",
        "--rm",
        "--publish", f"{ground.port}:{ground.port}",
        "--shm-size", "4g",
        "--env", f"{KV_SPACE}={KV_GIB}",
        "--env", "HF_HUB_OFFLINE=1",
        *bind_mount(ground.directory, "/models"),
        "--entrypoint", "vllm",
        image,
        *ground.arguments(f"/models/{ground.target}"),
    ]  # fmt: skip
    return "#!/bin/sh\nset -eu\nexec " + _lines(words)


def _objects(ground: _Ground, image: str, namespace: str) -> Iterator[dict[str, Any]]:
    labels = {"app.kubernetes.io/component": "engine", "app.kubernetes.io/instance": ground.name}
    metadata = {"name": ground.name, "namespace": namespace, "labels": labels}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(ground, image)},
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": labels, "ports": [{"name": "http", "port": ground.port, "targetPort": "http"}]},
    }


def _pod(ground: _Ground, image: str) -> dict[str, Any]:
    health = {"httpGet": {"path": "/health", "port": "http"}}
    container = {
        "name": "engine",
        "image": image,
        "command": ["vllm", *ground.arguments(f"/models/{ground.target}")],
        "env": [{"name": KV_SPACE, "value": str(KV_GIB)}, {"name": "HF_HUB_OFFLINE", "value": "1"}],
        "ports": [{"name": "http", "containerPort": ground.port}],
        "resources": {"requests": {"memory": f"{ground.memory_gib}Gi"}, "limits": {"memory": f"{ground.memory_gib}Gi"}},
        "startupProbe": {**health, "periodSeconds": 10, "failureThreshold": _STARTUP_SECONDS // 10},
        "readinessProbe": {**health, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "models", "mountPath": "/models", "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }
    return {
        "nodeSelector": {"kubernetes.io/hostname": ground.node},
        "containers": [container],
        "volumes": [
            {"name": "models", "hostPath": {"path": ground.directory, "type": "Directory"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}},
        ],
    }


def _steps(ground: _Ground) -> Iterator[GuideStep]:
    told = f"{ground.node} needs about {ground.memory_gib} GiB of memory that nothing else uses, of which "
    told += f"{KV_GIB} GiB a rank are KV cache; {_PROCESS_GIB} GiB of it are an estimate."
    yield GuideStep("prerequisite", "Free memory", told, ("free -g    # on the node",))
    if ground.image is None or ground.namespace is None:
        missing = "images.engine" if ground.image is None else "namespace"
        yield GuideStep("prerequisite", "What is not here", f"The site names no {missing}: there is no Deployment.")
    yield GuideStep(
        "deploy", "Start it without Kubernetes", "Until it says that startup is complete.", ("sh serve.sh",),
        _STARTUP_SECONDS,
    )  # fmt: skip
    if ground.image is not None and ground.namespace is not None:
        wait = f"kubectl -n {ground.namespace} rollout status deployment/{ground.name} --timeout={_STARTUP_SECONDS}s"
        commands = ("kubectl apply -f 10-engine.yaml", wait)
        yield GuideStep("deploy", "Or with it", "Apply the Deployment and wait.", commands, _STARTUP_SECONDS)
    request = f'{{"model": {json.dumps(ground.served)}, "prompt": "1 2 3", "max_tokens": 16}}'
    url = f"http://localhost:{ground.port}/v1/completions"
    ask = f"curl -sS --max-time 120 {url} -H 'Content-Type: application/json' -d {shlex.quote(request)}"
    told = "A text of 16 tokens; on CPUs it takes its time."
    if ground.image is not None and ground.namespace is not None:
        forward = f"kubectl -n {ground.namespace} port-forward svc/{ground.name} {ground.port}"
        told += f" With Kubernetes, run `{forward}` in another shell first."
    yield GuideStep("smoke", "One completion", told, (ask,), 120)
