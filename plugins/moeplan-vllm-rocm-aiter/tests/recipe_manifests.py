"""Manifests of the recipes' nine combinations, built from the handed data, to be changed by tests."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from moeplan_vllm_rocm_aiter.linting import lint

from moeplan.manifests.yaml_positions import load_manifests
from moeplan.model.plugin import PluginFinding
from moeplan.model.rendering import LintRequest, ManifestSource

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
FACTS = SHARED / "facts" / "rocm_facts.json"
SITE = {"hardware": "mi355x", "acceleratorsPerNode": 8, "modelStorage": "local-xfs", "expectedReadySeconds": 840}
_FILLED = {
    "<NODE>": "gpu-node-a",
    "<PREFILL_NODE>": "gpu-node-a",
    "<DECODE_NODE>": "gpu-node-b",
    "<MODEL_DIR>": "/srv/nvme/models",
    "<PREFILL_MODEL_DIR>": "/srv/nvme/models",
    "<DECODE_MODEL_DIR>": "/data/raid/models",
}


@cache
def handed() -> Any:
    """Return the handed facts with their combinations."""
    return json.loads(FACTS.read_bytes())


def _filled(what: Any) -> Any:
    if isinstance(what, dict):
        return {key: _filled(item) for key, item in what.items()}
    if isinstance(what, list):
        return [_filled(item) for item in what]
    return _FILLED.get(what, what) if isinstance(what, str) else what


class Recipe:
    """One combination: its services with flags and environment apart, and its other objects."""

    def __init__(self, combo: str) -> None:
        given = _filled(copy.deepcopy(handed()["combos"][combo]))
        self.combo = combo
        self.name: Any = given["deployment_name"]
        self.namespace: Any = "infera"
        self.spec: dict[str, Any] = {
            "backendFramework": given["backendFramework"],
            "discoveryBackend": given["discoveryBackend"],
            "nats": given["nats"],
        }
        self.services: dict[str, Any] = given["services"]
        self.others: list[dict[str, Any]] = [_other(one) for one in given["other_objects"]]

    @property
    def engines(self) -> list[str]:
        """Return the names of the services that run an engine."""
        return [name for name in self.services if name != "server"]

    def container(self, service: str, name: str = "main") -> dict[str, Any]:
        """Return a container of a service."""
        listed = [*self.services[service]["containers"], *self.services[service]["initContainers"]]
        return next(one for one in listed if one["name"] == name)

    def flags(self, service: str, name: str = "main") -> dict[str, Any]:
        """Return a container's flags."""
        flags: dict[str, Any] = self.container(service, name)["entry"]["flags"]
        return flags

    def env(self, service: str) -> dict[str, Any]:
        """Return the environment of a service's main container."""
        env: dict[str, Any] = self.container(service)["env"]
        return env

    def volume(self, service: str, name: str) -> dict[str, Any]:
        """Return a volume of a service."""
        return next(one for one in self.services[service]["volumes"] if one["name"] == name)

    def unmount(self, service: str, name: str) -> None:
        """Take a volume and its mounts out of a service."""
        self.services[service]["volumes"].remove(self.volume(service, name))
        mounts = self.container(service)["volumeMounts"]
        mounts[:] = [one for one in mounts if one["name"] != name]

    def documents(self) -> list[dict[str, Any]]:
        """Return the objects as they are applied."""
        services = {name: _service(value) for name, value in self.services.items()}
        deployment = {
            "apiVersion": "infera.amd.com/v1alpha1",
            "kind": "InferaDeployment",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {**self.spec, "services": services},
        }
        return [*self.others, deployment]

    def lint(self, profile: str | None = None, site: Mapping[str, Any] | None = None) -> tuple[PluginFinding, ...]:
        """Return what the plugin finds in it."""
        return lint_documents(self.documents(), profile, SITE if site is None else site)


def lint_documents(
    documents: list[dict[str, Any]], profile: str | None = None, site: Mapping[str, Any] | None = None
) -> tuple[PluginFinding, ...]:
    """Return what the plugin finds in objects."""
    text = yaml.safe_dump_all(documents, sort_keys=False)
    count = len(load_manifests(text.encode()).documents)
    return lint(LintRequest((ManifestSource("all.yaml", text, tuple(range(count))),), profile), site or {})


def told(findings: tuple[PluginFinding, ...]) -> set[str]:
    """Return the ids of all findings."""
    return {finding.id for finding in findings}


def faults(findings: tuple[PluginFinding, ...]) -> set[str]:
    """Return the ids of errors and warnings."""
    return {finding.id for finding in findings if finding.severity != "info"}


def _other(given: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": given["kind"], "metadata": {"name": given["name"]}, "spec": given["spec"]}


def _service(given: dict[str, Any]) -> dict[str, Any]:
    outside = ("componentType", "role", "replicas", "port", "skipReadinessProbe", *given.get("flat", {}))
    pod = {key: value for key, value in given.items() if key not in (*outside, "flat")}
    pod["initContainers"] = [_init(one) for one in given["initContainers"]]
    pod["containers"] = [_container(one) for one in given["containers"]]
    return {
        **{key: given[key] for key in outside if key in given},
        **given.get("flat", {}),
        "extraPodSpec": pod,
    }


def _init(given: dict[str, Any]) -> dict[str, Any]:
    if "entry" in given:
        return _container(given)
    return {**given, "volumeMounts": given.get("volumeMounts", [{"name": "overlay", "mountPath": "/overlay"}])}


def _container(given: dict[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in given.items() if key not in ("entry", "env", "startup_budget_s")}
    made["command"] = _command(given["entry"])
    made["env"] = [_variable(name, value) for name, value in given["env"].items()]
    return made


def _command(entry: dict[str, Any]) -> list[Any]:
    words: list[Any] = [entry["wrapper"]] if entry["wrapper"] else []
    words += ["python3", "-m", entry["module"]]
    for flag, value in entry["flags"].items():
        words.append(flag)
        if value is not True:
            words.append(json.dumps(value) if isinstance(value, dict) else value)
    return words


def _variable(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value.startswith("fieldRef:"):
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": value.removeprefix("fieldRef:")}}}
    return {"name": name, "value": value}


def repaired(combo: str) -> Recipe:
    """Return a combination with the defects of its shipped manifest mended, as the handed facts list them."""
    recipe = Recipe(combo)
    for name in recipe.engines if combo.startswith("stock/") else ():
        if combo.endswith("-sglang"):
            for half in ("requests", "limits"):
                recipe.container(name)["resources"][half]["amd.com/gpu"] = 8
            continue
        env, probe = recipe.env(name), recipe.container(name)["startupProbe"]
        env |= {"INFERA_ENGINE_READY_TIMEOUT": "7200", "VLLM_USE_BREAKABLE_CUDAGRAPH": "0"}
        env |= {"HSA_NO_SCRATCH_RECLAIM": "1"}
        probe["failureThreshold"] = 300
        if name != "worker":
            _as_half(recipe, name)
        if combo.endswith("-kvd"):
            _with_kvd(recipe, name)
    return recipe


def _as_half(recipe: Recipe, name: str) -> None:
    service, main, source = recipe.services[name], recipe.container(name), Recipe("opt/disaggregated")
    half = source.container(name)
    service |= {key: source.services[name][key] for key in ("hostNetwork", "dnsPolicy")}
    main["securityContext"] = half["securityContext"]
    recipe.flags(name)["--data-parallel-address"] = "$(POD_IP)"
    for volume in ("ib", "host-libionic"):
        if not any(one["name"] == volume for one in service["volumes"]):
            service["volumes"].append(source.volume(name, volume))
        if not any(one["name"] == volume for one in main["volumeMounts"]):
            main["volumeMounts"].append(next(one for one in half["volumeMounts"] if one["name"] == volume))


def _with_kvd(recipe: Recipe, name: str) -> None:
    service = recipe.services[name]
    daemon = recipe.container(name, "kvd")
    service["containers"].remove(daemon)
    service["initContainers"].append({**daemon, "restartPolicy": "Always"})
    recipe.env(name)["PYTHONHASHSEED"] = "0"
    transfer = recipe.flags(name)["--kv-transfer-config"]
    if transfer["kv_connector"] == "MultiConnector":
        transfer["kv_role"] = "kv_producer" if name == "prefill" else "kv_consumer"
