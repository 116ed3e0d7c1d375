"""Pod templates of known and unknown kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moeplan.manifests.pod_templates import PodTemplate, find_pod_templates
from moeplan.manifests.yaml_positions import load_manifests

POD = {"containers": [{"name": "main", "image": "i"}], "nodeSelector": {"a": "b"}, "hostNetwork": True}


def manifest(kind: str, spec: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "n", "namespace": "s"}, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "spec", "path", "owner"),
    [
        ("Pod", POD, "$.spec", "$"),
        ("Deployment", {"template": {"spec": POD}}, "$.spec.template.spec", "$.spec"),
        ("StatefulSet", {"template": {"spec": POD}}, "$.spec.template.spec", "$.spec"),
        ("DaemonSet", {"template": {"spec": POD}}, "$.spec.template.spec", "$.spec"),
        ("Job", {"template": {"spec": POD}}, "$.spec.template.spec", "$.spec"),
        (
            "CronJob",
            {"jobTemplate": {"spec": {"template": {"spec": POD}}}},
            "$.spec.jobTemplate.spec.template.spec",
            "$.spec",
        ),
        ("Own", {"podTemplate": POD}, "$.spec.podTemplate", "$.spec"),
        ("Own", {"parts": [{"template": {"spec": POD}}]}, "$.spec.parts[0].template.spec", "$.spec.parts[0]"),
    ],
)
def test_each_kind(kind: str, spec: Any, path: str, owner: str) -> None:
    (found,) = find_pod_templates(manifest(kind, spec))
    assert (found.kind, found.name, found.namespace, found.path, found.owner_path) == (kind, "n", "s", path, owner)
    assert found.containers[0].path == f"{path}.containers[0]"
    assert found.node_selector == {"a": "b"}
    assert found.host_network
    assert found.faults == ()


def test_leader_and_worker_are_roles() -> None:
    inner = {"leaderTemplate": {"metadata": {"labels": {"r": "l"}}, "spec": POD}, "workerTemplate": {"spec": POD}}
    found = find_pod_templates(manifest("LeaderWorkerSet", {"replicas": 1, "leaderWorkerTemplate": inner}))
    assert [(t.role, t.path, dict(t.labels)) for t in found] == [
        ("leader", "$.spec.leaderWorkerTemplate.leaderTemplate.spec", {"r": "l"}),
        ("worker", "$.spec.leaderWorkerTemplate.workerTemplate.spec", {}),
    ]
    del inner["leaderTemplate"]
    assert [t.role for t in find_pod_templates(manifest("LeaderWorkerSet", {"leaderWorkerTemplate": inner}))] == [
        "worker"
    ]


def test_what_a_container_holds() -> None:
    container = {
        "name": "c",
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {}}},
            {"name": "A", "value": "2"},
            {"name": "E"},
        ],
        "envFrom": [{"configMapRef": {"name": "m"}}],
        "command": ["x"],
        "volumeMounts": [{"name": "v", "mountPath": "/m", "readOnly": True, "subPath": "p"}],
        "resources": {"limits": {"amd.com/gpu": 8}, "requests": {"memory": "1Gi"}},
    }
    pod = {"containers": [container], "initContainers": [{"name": "i"}], "volumes": [{"name": "v", "emptyDir": {}}]}
    (found,) = find_pod_templates(manifest("Pod", pod))
    read = found.containers[0]
    assert [(e.name, e.value, e.source) for e in read.env] == [
        ("A", "1", None),
        ("B", None, "secretKeyRef"),
        ("A", "2", None),
        ("E", "", None),
    ]
    variable = read.variable("A")
    assert variable is not None
    assert (variable.value, variable.path) == ("2", "$.spec.containers[0].env[2]")
    assert (read.command, read.args, read.env_from) == (("x",), None, True)
    assert (read.mounts[0].volume, read.mounts[0].mount_path, read.mounts[0].sub_path) == ("v", "/m", "p")
    assert read.limits == {"amd.com/gpu": 8}
    assert [c.init for c in (*found.containers, *found.init_containers)] == [False, True]
    volume = found.volume("v")
    assert volume is not None
    assert (volume.source_kind, volume.source, volume.path) == ("emptyDir", {}, "$.spec.volumes[0]")
    assert found.volume("w") is None


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        (None, "$.spec"),
        ("x", "$.spec"),
        ({"volumes": []}, "$.spec.containers"),
        ({"containers": {"a": 1}}, "$.spec.containers"),
        ({"containers": ["x"]}, "$.spec.containers[0]"),
        ({"containers": [{"args": [8]}]}, "$.spec.containers[0].args[0]"),
        ({"containers": [{"env": [{"name": "A", "value": True}]}]}, "$.spec.containers[0].env[0].value"),
        ({"containers": [{}], "volumes": [{"emptyDir": {}}]}, "$.spec.volumes[0]"),
        ({"containers": [{}], "nodeSelector": 1}, "$.spec.nodeSelector"),
    ],
)
def test_what_is_malformed_is_told(pod: Any, path: str) -> None:
    (found,) = find_pod_templates(manifest("Pod", pod))
    assert found.faults[0].path == path


def test_values_of_the_wrong_type_are_read_as_meant() -> None:
    (found,) = find_pod_templates(manifest("Pod", {"containers": [{"args": [8, True]}]}))
    assert found.containers[0].args == ("8", "true")
    assert len(found.faults) == 2


@pytest.mark.parametrize(
    "value", [None, [], "x", {}, {"kind": 1}, {"kind": "Service", "spec": {"containers": []}}, {"kind": "X"}]
)
def test_other_values_hold_none(value: Any) -> None:
    assert find_pod_templates(value) == ()


@pytest.mark.shared
def test_shared_cases(shared_dir: Path) -> None:
    found: dict[str, list[PodTemplate]] = {}
    for path in sorted((shared_dir / "cases" / "lint").glob("*.yaml")):
        documents = load_manifests(path.read_bytes()).documents
        found[path.name[:3]] = [t for document in documents for t in find_pod_templates(document.value)]
    assert [t.role for t in found["l13"]] == ["server", "prefill", "decode"]
    assert [t.role for t in found["l29"]] == [""]
    decode = found["l13"][2]
    assert decode.owner_path == "$.spec.services.decode"
    assert decode.owner["role"] == "decode"
    assert decode.containers[0].variable("AITER_SITUV2_A8W4") is None
    assert found["l13"][1].containers[0].variable("AITER_SITUV2_A8W4") is not None
    model = decode.volume("model")
    assert model is not None
    assert model.source["path"] == "/data/raid/models"
    assert [t.faults for listed in found.values() for t in listed if t.faults] == []
