"""Probing this host, and a cluster through a kubectl that a test puts on the path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.model.site_probe import SiteProbe
from moeplan.site import probing
from moeplan.site.kubectl import Kubectl, KubectlFault, pod_overrides, read_nodes, requested
from moeplan.site.probing import check_probe, probe_cluster, probe_here
from moeplan.wire.converter import unstructure
from moeplan.wire.documents import dump_document, load_document

AT = "2026-11-30T18:00:00Z"
IMAGE = "registry.example/python:3.12@sha256:" + "ab" * 32

FAKE = """#!{python}
import json, os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "calls"), "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
words = [word for word in sys.argv[1:] if not word.startswith("--")]
name = "-".join(words[:2]) if words[0] != "run" else "run"
if name == "run":
    sent = sys.stdin.read()
    pod = json.loads([w for w in sys.argv if w.startswith("--overrides=")][0].partition("=")[2])
    command = pod["spec"]["containers"][0]["command"]
    if os.path.exists(os.path.join(here, "refuse-run")):
        sys.stderr.write("error: timed out waiting for the condition\\n")
        sys.exit(1)
    # The pod's file system is this host's: what it mounts at /moeplan/N stands beside this file.
    paths = [volume["hostPath"]["path"] for volume in pod["spec"]["volumes"]]
    for number, path in enumerate(paths):
        mounted = os.path.join(here, "mounted-%d" % number)
        os.symlink(path, mounted)
        command = [word.replace("=/moeplan/%d" % number, "=" + mounted) for word in command]
    sys.stdout.write("warning: couldn't attach to pod, falling back to streaming logs\\n")
    sys.stdout.flush()
    sys.exit(subprocess.run([sys.executable] + command[1:], input=sent, text=True).returncode)
path = os.path.join(here, name)
if not os.path.exists(path):
    sys.stderr.write("E1130 a try that failed\\nError from server (Forbidden): \\x1b[31mno\\n")
    sys.exit(1)
sys.stdout.write(open(path).read())
"""


def _node(name: str, accelerators: int | None, **spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": "96"} | ({} if accelerators is None else {"amd.com/gpu": str(accelerators)})
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": f"{name}.host"}},
        "spec": spec,
        "status": {
            "allocatable": allocatable,
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": "192.0.2.7"},
            ],
        },
    }


def _pod(node: str | None, *requests: int, phase: str = "Running", init: Any = ()) -> dict[str, Any]:
    containers = [{"resources": {"requests": {"amd.com/gpu": str(count)}}} for count in requests]
    spec: dict[str, Any] = {"containers": containers, "initContainers": list(init)}
    return {"spec": spec | ({"nodeName": node} if node else {}), "status": {"phase": phase}}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory whose files a kubectl on the path answers from."""
    fake = tmp_path / "kubectl"
    fake.write_text(FAKE.format(python=sys.executable), "utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    nodes = [
        _node("b", 8, taints=[{"key": "amd.com/gpu", "value": "x", "effect": "NoSchedule"}], unschedulable=True),
        _node("a", 8),
        _node("login", None),
    ]
    pods = [_pod("a", 2, 1), _pod("a", 4, phase="Succeeded"), _pod(None, 8, phase="Pending"), _pod("b", 8)]
    _answer(tmp_path, "version", {"serverVersion": {"gitVersion": "v1.31.2"}})
    _answer(tmp_path, "get-nodes", {"items": nodes})
    _answer(tmp_path, "get-pods", {"items": pods})
    return tmp_path


def _answer(folder: Path, name: str, value: Any) -> None:
    (folder / name).write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")


def _calls(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "calls").read_text("utf-8").splitlines()]


def _rows(probe: SiteProbe) -> dict[str, tuple[str, str | None]]:
    return {look.what: (look.outcome, look.why) for look in probe.looks}


def test_this_host_is_probed_and_the_document_is_a_document() -> None:
    probe = probe_here(AT, ["/proc", "/none/such"])
    assert load_document(dump_document(probe), SiteProbe) == probe
    [node] = probe.nodes
    assert node.values.memlock_bytes is not None
    assert [(one.path, one.exists) for one in node.directories] == [("/proc", True), ("/none/such", False)]
    assert node.directories[0].storage is not None
    assert node.directories[0].storage.filesystem == "proc"
    assert probe.looks == ()


def test_a_probe_that_cannot_start_or_answers_nonsense_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "p.py"
    monkeypatch.setattr(probing, "node_program", lambda: program)
    for text, why in (
        ("print('{\"values\": 1}')", "its answer is refused: $.directories: key missing"),
        ("print('hello')", "the probe printed nothing"),
        ("print('{')", "its answer is refused: $: not JSON"),
    ):
        program.write_text(text, "utf-8")
        probe = probe_here(AT)
        assert probe.nodes == ()
        assert probe.looks[0].outcome == "failed"
        assert (probe.looks[0].why or "").startswith(why)


def test_free_accelerators_are_what_no_pod_asks_for(cluster: Path) -> None:
    probe = probe_cluster(AT, Kubectl("lab", "serving"))
    assert [unstructure(node.values) for node in probe.nodes] == [
        {"name": "a.host", "address": "192.0.2.7", "accelerators": 8, "freeAccelerators": 5, "taints": [],
         "unschedulable": False},
        {"name": "b.host", "address": "192.0.2.7", "accelerators": 8, "freeAccelerators": 0,
         "taints": [{"key": "amd.com/gpu", "value": "x", "effect": "NoSchedule"}], "unschedulable": True},
    ]  # fmt: skip
    assert probe.kubernetes is not None
    assert probe.kubernetes.version == "v1.31.2"
    assert {what: outcome for what, (outcome, _why) in _rows(probe).items()} == {
        "server_version": "found",
        "nodes": "found",
        "pods": "found",
    }
    assert probe.looks[1].how == "kubectl --context=lab --namespace=serving get nodes --output=json"
    assert all(call[:2] == ["--context=lab", "--namespace=serving"] for call in _calls(cluster))


def test_nodes_are_chosen_by_either_name_and_a_missing_one_is_a_row(cluster: Path) -> None:
    probe = probe_cluster(AT, Kubectl(), nodes=["login", "b.host", "c"])
    assert [node.values.name for node in probe.nodes] == ["b.host", "login.host"]
    assert probe.nodes[1].values.accelerators == 0
    assert _rows(probe)["node"] == ("not_found", "the cluster has no such node")


def test_what_the_server_refuses_is_a_row_and_the_rest_goes_on(cluster: Path) -> None:
    (cluster / "get-pods").unlink()
    (cluster / "version").write_text('{"clientVersion": {}}', "utf-8")
    probe = probe_cluster(AT, Kubectl())
    assert probe.nodes[0].values.accelerators == 8
    assert probe.nodes[0].values.free_accelerators is None
    assert _rows(probe)["pods"] == ("failed", "exit 1: Error from server (Forbidden): \\x1b[31mno")
    assert _rows(probe)["server_version"] == ("failed", "the server did not tell its version")
    (cluster / "get-nodes").write_text("not json", "utf-8")
    assert _rows(probe_cluster(AT, Kubectl()))["nodes"] == ("failed", "its answer is not JSON")
    (cluster / "get-nodes").write_text('{"items": [{"metadata": {}}]}', "utf-8")
    assert "another shape" in (_rows(probe_cluster(AT, Kubectl()))["nodes"][1] or "")
    none = probe_cluster(AT, Kubectl(program="kubectl-none"))
    assert {outcome for outcome, _why in _rows(none).values()} == {"failed"}
    assert none.nodes == ()


def test_a_node_that_the_document_cannot_hold_is_a_row(cluster: Path) -> None:
    _answer(cluster, "get-nodes", {"items": [_node("a", 8, taints=[{"key": "k", "effect": "Never"}]), _node("b", 1)]})
    probe = probe_cluster(AT, Kubectl())
    assert [node.values.name for node in probe.nodes] == ["b.host"]
    assert (_rows(probe)["node"][1] or "").startswith("its answer is refused: $.taints[0].effect")


def test_a_pod_on_each_node_looks_at_the_directories_themselves(cluster: Path, tmp_path: Path) -> None:
    models = tmp_path / "a=b"
    models.mkdir()
    probe = probe_cluster(AT, Kubectl(), nodes=["a"], directories=[str(models)], image=IMAGE)
    [node] = probe.nodes
    assert (node.values.name, node.values.free_accelerators) == ("a.host", 5)
    assert node.values.host_memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert node.values.shared_memory_bytes is None
    assert [(one.path, one.exists) for one in node.directories] == [(str(models), True)]
    assert node.looks[0].what == "node_probe"
    assert node.looks[0].outcome == "found"
    [run] = [call for call in _calls(cluster) if call[0] == "run"]
    assert run[2:6] == [f"--image={IMAGE}", "--restart=Never", "--rm", "--stdin"]


def test_a_pod_that_does_not_run_is_a_row_with_the_clusters_reason_and_is_deleted(cluster: Path) -> None:
    (cluster / "refuse-run").touch()
    _answer(cluster, "get-events", {"items": [{"message": "hostPath type check failed: /x is not a directory"}]})
    probe = probe_cluster(AT, Kubectl(), nodes=["a"], directories=["/x"], image=IMAGE)
    [node] = probe.nodes
    assert node.values.accelerators == 8
    assert [(look.what, look.outcome) for look in node.looks] == [("node_probe", "failed")]
    assert node.looks[0].why == (
        "exit 1: error: timed out waiting for the condition; hostPath type check failed: /x is not a directory"
    )
    calls = _calls(cluster)
    name = next(call[1] for call in calls if call[0] == "run")
    assert ["delete", "pod", name, "--ignore-not-found", "--wait=false"] in calls


def test_a_call_that_hangs_is_ended() -> None:
    def hang(_words: list[str], **rest: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], **rest)

    with pytest.raises(KubectlFault) as caught:
        Kubectl(timeout_s=1, run=hang).call("version")
    assert (caught.value.outcome, caught.value.why) == ("timed_out", "no answer in 1 s")


def test_the_pod_is_pinned_unprivileged_and_holds_no_accelerator() -> None:
    pod = pod_overrides("p", "node-a", IMAGE, ["/data/models"], 60)
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    assert (spec["nodeName"], spec["activeDeadlineSeconds"], spec["automountServiceAccountToken"]) == (
        "node-a",
        60,
        False,
    )
    assert spec["volumes"] == [
        {"name": "directory-0", "hostPath": {"path": "/data/models", "type": "Directory"}},
    ]
    assert container["volumeMounts"] == [{"name": "directory-0", "mountPath": "/moeplan/0", "readOnly": True}]
    assert container["command"][-1] == "--directory=/data/models=/moeplan/0"
    assert "gpu" not in json.dumps(pod)
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.parametrize(
    ("pod", "held"),
    [
        (_pod("a", 2, 1), 3),
        (_pod("a", 1, init=[{"resources": {"requests": {"amd.com/gpu": "4"}}}]), 4),
        (_pod("a", 1, init=[{"restartPolicy": "Always", "resources": {"limits": {"amd.com/gpu": "2"}}}]), 3),
        (_pod("a", 1, phase="Pending"), 1),
        (_pod("a", 1, phase="Failed"), 0),
        (_pod("a"), 0),
        ({"spec": {"nodeName": "a", "containers": [{"name": "x"}]}}, 0),
    ],
)
def test_what_a_pod_holds(pod: Any, held: int) -> None:
    assert requested({"items": [pod]}).get(("a", "amd.com/gpu"), 0) == held


def test_answers_of_another_shape_are_faults() -> None:
    text = {"metadata": {"name": "a"}, "status": {"allocatable": {"amd.com/gpu": "x"}}}
    nodes: list[Any] = [{}, {"items": [1]}, {"items": [text]}]
    pods: list[Any] = [[], {"items": [{"spec": {"nodeName": "a", "containers": 1}}]}]
    for told in nodes:
        with pytest.raises(KubectlFault):
            read_nodes(told)
    for told in pods:
        with pytest.raises(KubectlFault):
            requested(told)


@pytest.mark.parametrize(
    ("directories", "image", "deadline", "cluster", "paths"),
    [
        (["models"], None, None, False, ["--directory"]),
        (["/a\n"], None, None, False, ["--directory"]),
        ([], None, 0, False, ["--deadline"]),
        ([], "python:3.12", None, True, ["--image"]),
        (["/data"], None, None, True, ["--image"]),
        (["/data"], IMAGE, 60, True, []),
        (["/data"], None, 60, False, []),
    ],
)
def test_what_cannot_be_probed_is_refused_before_anything_starts(
    directories: list[str], image: str | None, deadline: int | None, cluster: bool, paths: list[str]
) -> None:
    try:
        check_probe(directories, image, deadline, cluster=cluster)
    except InputError as error:
        found = [issue.path for issue in error.issues]
    else:
        found = []
    assert found == paths
