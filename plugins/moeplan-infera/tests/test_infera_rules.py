"""Infera's facts and rules on a deployment of any model, each broken once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from moeplan_infera.derived import DERIVED
from moeplan_infera.facts import infera_facts
from moeplan_infera.programs import infera_programs, infera_role
from moeplan_infera.registered import RULES
from moeplan_infera.schema import faults_of

from moeplan.facts.judge import judge
from moeplan.facts.launches import Knowledge, read_scene
from moeplan.manifests.argument_table import parse_argument_table
from moeplan.manifests.yaml_positions import load_manifests
from moeplan.model.plugin import PluginFinding
from moeplan.model.rendering import ManifestSource

CRD = Path(__file__).resolve().parents[3].parent / "shared" / "facts" / "inferadeployment-crd.json"
_VLLM = parse_argument_table(
    [
        *({"name": name, "kind": "value"} for name in ("--model", "--port", "--host", "--tensor-parallel-size")),
        {"name": "--data-parallel-address", "kind": "value"},
        {"name": "--kv-transfer-config", "kind": "json"},
    ]
)
_KNOWLEDGE = Knowledge(programs=infera_programs(_VLLM), role=infera_role, derived=DERIVED)
_AGGREGATED = """\
apiVersion: infera.amd.com/v1alpha1
kind: InferaDeployment
metadata: {name: glm, namespace: serving}
spec:
  backendFramework: vllm
  nats: {deploy: false}
  services:
    server:
      componentType: server
      extraPodSpec:
        nodeSelector: {kubernetes.io/hostname: a}
        containers:
        - name: main
          image: registry.example.com/infera:1
          command: [infera-exec, python3, -m, infera.server, --request-transport, http, --kv-event-transport, zmq,
            --router-tokenizer-path, /models/GLM]
          volumeMounts: [{name: model, mountPath: /models}]
        volumes: [{name: model, hostPath: {path: /srv/models}}]
    worker:
      componentType: worker
      extraPodSpec:
        nodeSelector: {kubernetes.io/hostname: a}
        containers:
        - name: main
          image: registry.example.com/infera:1
          command: [infera-exec, python3, -m, infera.engine.vllm, --model, /models/GLM, --request-transport, http,
            --kv-event-transport, zmq]
          env:
          - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
          - {name: VLLM_HOST_IP, value: $(POD_IP)}
          resources: {limits: {amd.com/gpu: 8, memory: 512Gi}}
          volumeMounts: [{name: model, mountPath: /models}]
        volumes: [{name: model, hostPath: {path: /srv/models}}]
"""


def _lint(*documents: Any) -> tuple[PluginFinding, ...]:
    text = yaml.safe_dump_all(documents, sort_keys=False)
    numbers = tuple(range(len(load_manifests(text.encode()).documents)))
    scene = read_scene((ManifestSource("a.yaml", text, numbers),), _KNOWLEDGE)
    return judge(scene, infera_facts(), RULES)


def _faults(*documents: Any) -> set[str]:
    return {finding.id for finding in _lint(*documents) if finding.severity != "info"}


def _given() -> Any:
    return yaml.safe_load(_AGGREGATED)


def _pair() -> Any:
    made = _given()
    services = made["spec"]["services"]
    worker = services.pop("worker")
    for name, node, role in (("prefill", "a", "kv_producer"), ("decode", "b", "kv_consumer")):
        service = json.loads(json.dumps(worker)) | {"role": name}
        pod, main = service["extraPodSpec"], service["extraPodSpec"]["containers"][0]
        pod |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
        pod["nodeSelector"] = {"kubernetes.io/hostname": node}
        transfer = json.dumps({"kv_connector": "MooncakeConnector", "kv_role": role})
        main["command"] += ["--data-parallel-address", "$(POD_IP)", "--kv-transfer-config", transfer]
        main["securityContext"] = {"privileged": True, "capabilities": {"add": ["IPC_LOCK", "SYS_PTRACE"]}}
        for volume, path in (("ib", "/dev/infiniband"), ("lib", "/host-libionic/libionic.so")):
            pod["volumes"].append({"name": volume, "hostPath": {"path": path}})
            main["volumeMounts"].append({"name": volume, "mountPath": path})
        services[name] = service
    return made


def test_what_is_right_gives_nothing() -> None:
    assert _faults(_given()) == set()
    assert _faults(_pair()) == set()


def _main(made: Any, service: str = "worker") -> Any:
    return made["spec"]["services"][service]["extraPodSpec"]["containers"][0]


def _pod(made: Any, service: str = "worker") -> Any:
    return made["spec"]["services"][service]["extraPodSpec"]


def _set(path: str, value: Any) -> Callable[[Any], None]:
    *above, last = path.split("/")

    def change(made: Any) -> None:
        for step in above:
            made = made[int(step) if step.isdigit() else step]
        made[int(last) if last.isdigit() else last] = value

    return change


def _env_after_use(made: Any) -> None:
    _main(made)["env"].reverse()


def _unknown_key(made: Any) -> None:
    _pod(made)["hostnetwork"] = True


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_set("metadata/name", "GLM"), {"R-OPR-004"}),
        (_set("metadata/name", "g" * 57), {"R-OPR-004"}),
        (_set("metadata/name", "g" * 56), set()),
        (_set("spec/discoveryBackend", "etcd"), {"R-OPR-001"}),
        (_set("spec/nats", {}), {"R-OPR-007"}),
        (_set("spec/nats", {"deploy": False, "storageSize": "4 GiB"}), {"R-OPR-003"}),
        (_set("spec/services/worker/args", []), {"R-OPR-002"}),
        (_set("spec/services/worker/role", "aggregated"), {"R-OPR-013"}),
        (_set("spec/services/worker/numberOfNodes", 2), {"R-OPR-008"}),
        (_set("spec/services/worker/port", 31000), {"R-ARG-027"}),
        (_set("spec/services/worker/port", "30000"), {"R-OPR-017"}),
        (_set("spec/services/worker/componentType", "engine"), {"R-OPR-017"}),
        (_unknown_key, {"R-OPR-017"}),
        (_env_after_use, {"R-OPR-010"}),
        (_set("spec/services/worker/extraPodSpec/nodeSelector", {"kubernetes.io/hostname": "b"}), {"R-PH-007"}),
        (_set("spec/services/worker/extraPodSpec/containers/0/name", "engine"), {"R-OPR-006"}),
        (_set("spec/services/worker/extraPodSpec/containers/0/env/1/value", 7), {"R-ENV-021"}),
        (_set("spec/services/worker/extraPodSpec/containers/0/resources/limits/memory", "512 GB"), {"R-OPR-003"}),
        (_set("spec/services/server/extraPodSpec/containers/0/command/9", "/models/Other"), {"R-OPR-016"}),
    ],
)
def test_one_thing_changed(change: Callable[[Any], None], expected: set[str]) -> None:
    made = _given()
    change(made)
    assert _faults(made) == expected


def test_a_pair_broken() -> None:
    made = _pair()
    _pod(made, "decode")["nodeSelector"] = {"kubernetes.io/hostname": "a"}
    assert _faults(made) == {"R-PH-004"}
    made = _pair()
    _pod(made, "decode").pop("nodeSelector")
    assert _faults(made) == {"R-PH-004"}
    _pod(made, "decode")["affinity"] = {"podAntiAffinity": {}}
    assert _faults(made) == set()
    made = _pair()
    made["spec"]["services"].pop("decode")
    assert _faults(made) == {"R-OPR-014"}
    made = _pair()
    _main(made, "prefill")["volumeMounts"].pop()
    assert _faults(made) == {"R-PD-005", "R-PD-006"}


def test_a_finding_tells_its_line_and_column() -> None:
    text = _AGGREGATED.replace("name: glm,", "name: g.m,")
    scene = read_scene((ManifestSource("a.yaml", text, (0,)),), _KNOWLEDGE)
    found = [one for one in judge(scene, infera_facts(), RULES) if one.severity == "error"]
    assert [(one.id, one.file, one.line, one.column, one.path) for one in found] == [
        ("R-OPR-004", "a.yaml", 3, 12, "$.metadata.name")
    ]


def test_flat_services_are_judged_too() -> None:
    made = _given()
    worker = {"componentType": "worker", "resources": {"memory": "512 GB"}, "env": [{"name": "A", "value": 1}]}
    made["spec"]["services"]["worker"] = worker
    made["spec"]["services"].pop("server")
    assert _faults(made) == {"R-OPR-003", "R-ENV-021", "R-OPR-015"}
    made["spec"]["gaie"] = {"enabled": True, "gatewayName": "g", "tokenizerPath": "/t"}
    assert _faults(made) == {"R-OPR-003", "R-ENV-021"}


def test_a_claim_that_one_node_holds() -> None:
    made = _pair()
    for name in ("prefill", "decode"):
        _pod(made, name)["volumes"][0] = {"name": "model", "persistentVolumeClaim": {"claimName": "w"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Ti"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "w"}, "spec": spec}
    assert _faults(made) == set()
    assert "R-WT-006" in {finding.id for finding in _lint(made)}
    assert _faults(made, claim) == {"R-WT-006"}
    spec["accessModes"] = ["ReadWriteMany"]
    assert _faults(made, claim) == set()


@pytest.mark.parametrize("junk", [None, 7, "x", [], {}, {"services": []}, {"services": {"a": 1}}])
def test_no_manifest_at_all_is_told_and_breaks_nothing(junk: Any) -> None:
    made = _given() | {"spec": junk}
    found = _lint(made)
    assert all(finding.id.startswith("R-") for finding in found)
    assert list(faults_of(made)) or junk == {"services": {}}


@pytest.mark.shared
@pytest.mark.skipif(not CRD.exists(), reason="the shared definition does not lie beside the repository")
def test_the_definition_has_the_keys_of_the_handed_one() -> None:
    spec = json.loads(CRD.read_bytes())["openAPIV3Schema"]["properties"]["spec"]
    service = spec["properties"]["services"]["additionalProperties"]
    pod = service["properties"]["extraPodSpec"]["properties"]
    ours = json.loads((Path(faults_of.__code__.co_filename).parent / "inferadeployment.json").read_bytes())
    for name, theirs in (
        ("spec", spec["properties"]),
        ("service", service["properties"]),
        ("nats", spec["properties"]["nats"]["properties"]),
        ("gaie", spec["properties"]["gaie"]["properties"]),
        ("resources", service["properties"]["resources"]["properties"]),
        ("pod", pod),
        ("container", pod["containers"]["items"]["properties"]),
        ("probe", pod["containers"]["items"]["properties"]["startupProbe"]["properties"]),
    ):
        assert set(ours[name]["keys"]) == set(theirs), name
