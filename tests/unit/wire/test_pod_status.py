from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.wire.pod_status import ContainerStatus, read_items, read_pods

SAMPLES = Path(__file__).resolve().parents[3].parent / "shared" / "samples" / "public" / "k8s"
DIGEST = "sha256:" + "ab" * 32


def pod(**status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": "engine-0", "namespace": "prod"},
        "spec": {"nodeName": "gpu-7"},
        "status": {"phase": "Running", "startTime": "2026-11-30T16:00:00Z", **status},
    }


def test_init_containers_sidecars_and_ephemeral_ones_are_told_apart() -> None:
    status = {
        "initContainerStatuses": [{"name": "copy", "imageID": f"docker-pullable://r/x@{DIGEST}", "restartCount": 0}],
        "containerStatuses": [
            {"name": "engine", "imageID": f"r.example/vllm@{DIGEST}", "restartCount": 3},
            {"name": "tagged", "imageID": "r.example/vllm:latest"},
        ],
        "ephemeralContainerStatuses": [{"name": "debug", "imageID": DIGEST}],
    }
    (found,) = read_pods(json.dumps(pod(**status)).encode())
    assert found.containers == (
        ContainerStatus("init", "copy", DIGEST, 0, None),
        ContainerStatus("container", "engine", DIGEST, 3, None),
        ContainerStatus("container", "tagged", None, 0, None),
        ContainerStatus("ephemeral", "debug", DIGEST, 0, None),
    )
    assert (found.name, found.namespace, found.node, found.phase) == ("engine-0", "prod", "gpu-7", "Running")


@pytest.mark.parametrize(
    ("state", "last", "reason"),
    [
        ({"waiting": {"reason": "CrashLoopBackOff"}}, {"terminated": {"reason": "OOMKilled"}}, "OOMKilled"),
        ({"waiting": {"reason": "ImagePullBackOff"}}, {}, "ImagePullBackOff"),
        ({"terminated": {"reason": "Error"}}, {}, "Error"),
        ({"terminated": {"reason": "Completed"}}, {}, None),
        ({"running": {}}, {}, None),
        ({"waiting": {"reason": "a secret with spaces"}}, {}, None),
    ],
)
def test_why_a_container_does_not_run(state: Any, last: Any, reason: str | None) -> None:
    status = {"containerStatuses": [{"name": "e", "imageID": "", "state": state, "lastState": last}]}
    assert read_pods(json.dumps(pod(**status)).encode())[0].containers[0].reason == reason


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"{", "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"[]", "wrong_type"),
        (b'{"kind": "PodList", "items": []}', "no_pods"),
        (b'{"kind": "PodList", "items": 3}', "wrong_type"),
        (b'{"kind": "NodeList", "items": [{"kind": "Node"}]}', "wrong_kind"),
    ],
)
def test_what_is_no_list_of_pods_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(InputError) as refused:
        read_pods(data)
    assert refused.value.issues[0].code == code


def test_odd_shapes_within_a_pod_are_no_fault() -> None:
    odd = {"kind": "Pod", "metadata": 3, "spec": [], "status": {"containerStatuses": [3, {"restartCount": "x"}]}}
    (found,) = read_pods(json.dumps(odd).encode())
    assert (found.name, found.node, found.phase) == ("", None, "Unknown")
    assert found.containers == (ContainerStatus("container", "", None, 0, None),)


@pytest.mark.shared
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared samples are not here")
def test_recorded_lists() -> None:
    (killed,) = read_pods((SAMPLES / "troubleshoot-pods-message-oomkill-pod.json").read_bytes())
    raw = json.loads((SAMPLES / "troubleshoot-pods-message-oomkill-pod.json").read_text())["items"][0]
    first = raw["status"]["containerStatuses"][0]
    assert killed.containers[0].reason == "OOMKilled"
    assert killed.containers[0].restarts == first["restartCount"]
    assert f"{killed.containers[0].image}" in first["imageID"]
    pods = read_pods((SAMPLES / "kuard-pods-list.json").read_bytes())
    assert {one.node for one in pods} == {"minikube"}
    events = (SAMPLES / "troubleshoot-events-message-pod-init-crashloop-backoff.json").read_bytes()
    assert len(read_items(events, "Event")) == len(json.loads(events)["items"])
