"""What is read out of manifests and scripts, with its place."""

from __future__ import annotations

from typing import Any

import pytest

from moeplan.facts.fields import parse_field
from moeplan.facts.launches import Subject
from tests.unit.facts.made import pod, scene


def look(subject: Subject, field: str) -> tuple[str, Any]:
    value = subject.look(parse_field(field))
    return value.state, value.value


def place(subject: Subject, field: str) -> tuple[int | None, int | None]:
    found = subject.look(parse_field(field)).place
    assert found is not None
    return found.line, found.column


def test_arguments_in_their_forms() -> None:
    (launch,) = scene(
        pod("[vllm, serve, /m/Known, -tp, '8', --spec.method, mtp, --no-enable-expert-parallel]")
    ).launches
    assert look(launch, "argument --tensor-parallel-size") == ("known", "8")
    assert look(launch, "argument --speculative-config method") == ("known", "mtp")
    assert look(launch, "argument --speculative-config model") == ("absent", None)
    assert look(launch, "argument --enable-expert-parallel") == ("known", False)
    assert look(launch, "argument --gpu-memory-utilization") == ("absent", None)
    assert look(launch, "launch model") == ("known", "/m/Known")
    assert look(launch, "model heads") == ("known", 64)
    assert look(launch, "model layers") == ("unknown", None)
    assert look(launch, "launch version") == ("known", "0.27.1")


def test_what_only_running_tells_is_unknown() -> None:
    text = pod(
        "[vllm, serve, --model, $(WHICH), --tensor-parallel-size, $(TP), --speculative-config, '{x']",
        "env: [{name: TP, value: '4'}, {name: WHICH, valueFrom: {configMapKeyRef: {name: a, key: b}}}]",
    )
    (launch,) = scene(text).launches
    assert look(launch, "argument --tensor-parallel-size") == ("known", "4")
    assert look(launch, "argument --model") == ("unknown", None)
    assert look(launch, "launch model") == ("unknown", None)
    assert look(launch, "model heads") == ("unknown", None)
    assert look(launch, "argument --speculative-config") == ("unknown", None)
    assert look(launch, "environment WHICH") == ("unknown", None)
    assert look(launch, "environment TP") == ("known", "4")
    assert look(launch, "environment OTHER") == ("absent", None)
    (launch,) = scene(pod(more="envFrom: [{configMapRef: {name: a}}]")).launches
    assert look(launch, "environment OTHER") == ("unknown", None)
    (launch,) = scene('vllm serve /m/Known "$@"\n').launches
    assert look(launch, "argument --tensor-parallel-size") == ("unknown", None), "the caller may give it"


def test_pod_container_mount_resource() -> None:
    more = "volumeMounts: [{name: shm, mountPath: /dev/shm/}]"
    volumes = "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]"
    (launch,) = scene(pod(more=more, pod_more=volumes)).launches
    assert look(launch, "mount /dev/shm kind") == ("known", "emptyDir")
    assert look(launch, "mount /dev/shm source.medium") == ("known", "Memory")
    assert look(launch, "mount /models") == ("absent", None)
    assert look(launch, "derived shm-bytes") == ("known", 16 * 2**30)
    assert look(launch, "derived accelerators") == ("known", 2)
    assert look(launch, "resource example.com/gpu") == ("known", 2)
    assert look(launch, "container name") == ("known", "engine")
    assert look(launch, "pod containers[*].name") == ("known", ["engine"])
    assert look(launch, "image repository") == ("known", "example/vllm/vllm-openai")
    assert look(launch, "image digest") == ("absent", None)
    assert look(launch, "document metadata.name") == ("known", "d")


def test_probe_budget_has_kubernetes_defaults() -> None:
    (launch,) = scene(pod(more="startupProbe: {httpGet: {path: /health, port: 8000}, failureThreshold: 300}")).launches
    assert look(launch, "derived startup-budget-seconds") == ("known", 3000)
    assert look(launch, "derived liveness-budget-seconds") == ("absent", None)


def test_entrypoint_of_an_image_and_bare_options() -> None:
    text = pod().replace("command: [vllm, serve, /m/Known]", "args: [serve, /m/Known, -tp, '2']")
    (launch,) = scene(text).launches
    assert look(launch, "argument --tensor-parallel-size") == ("known", "2")
    assert scene(text.replace("vllm/vllm-openai", "other/image")).launches == []
    (launch,) = scene("--tensor-parallel-size 8 \\\n  --gpu-memory-utilization 0.9\n").launches
    assert place(launch, "argument --gpu-memory-utilization") == (2, 3)
    assert scene("echo --tensor-parallel-size 8\n").launches == []


def test_docker_run_is_a_pod_of_one_container() -> None:
    text = """\
docker run --rm -it --gpus all --ipc=host --network host -e A=1 --env=B=2 -e C --shm-size 32g \\
  -v /data/models:/models:ro --device /dev/kfd --privileged --cap-add IPC_LOCK \\
  vllm/vllm-openai:v0.27.1 /models/Known --tensor-parallel-size 8
"""
    (launch,) = scene(text).launches
    assert look(launch, "argument --tensor-parallel-size") == ("known", "8")
    assert place(launch, "argument --tensor-parallel-size") == (3, 42)
    assert look(launch, "environment A") == ("known", "1")
    assert look(launch, "environment B") == ("known", "2")
    assert look(launch, "environment C") == ("unknown", None), "the host's value"
    assert look(launch, "mount /models source.path") == ("known", "/data/models")
    assert look(launch, "mount /models readOnly") == ("known", True)
    assert look(launch, "mount /dev/kfd kind") == ("known", "hostPath")
    assert look(launch, "derived shm-bytes") == ("known", 32 * 2**30)
    assert look(launch, "pod hostIPC") == ("known", True)
    assert look(launch, "pod hostNetwork") == ("known", True)
    assert look(launch, "container securityContext.privileged") == ("known", True)
    assert look(launch, "container securityContext.capabilities.add") == ("known", ["IPC_LOCK"])
    (launch,) = scene("docker run --entrypoint vllm img serve /m -tp 4\n").launches
    assert look(launch, "argument --tensor-parallel-size") == ("known", "4")
    assert scene("docker ps\ndocker run --rm\n").launches == []


@pytest.mark.parametrize(
    ("option", "seen"),
    [
        ("--gpus all", ("absent", None)),
        ("--gpus 4", ("known", 4)),
        ("--gpus '\"device=0,2,3\"'", ("known", 3)),
        ("--gpus device=$D", ("absent", None)),
        ("", ("absent", None)),
    ],
)
def test_the_gpus_that_docker_run_gives(option: str, seen: tuple[str, int | None]) -> None:
    (launch,) = scene(f"docker run {option} --entrypoint vllm img serve /m\n").launches
    assert look(launch, "derived accelerators") == seen


def test_a_shell_in_docker_run_runs_its_script() -> None:
    (launch,) = scene("docker run -e A=1 --entrypoint bash img -c 'B=2 vllm serve /m -tp 4'\n").launches
    assert look(launch, "argument --tensor-parallel-size") == ("known", "4")
    assert [look(launch, f"environment {name}") for name in "AB"] == [("known", "1"), ("known", "2")]
    faulty = scene('docker run --entrypoint bash img -c "vllm serve \'"\n')
    assert [issue.code for _, issue in faulty.faults] == ["invalid_script"]


def test_scripts_within_manifests_have_their_own_lines() -> None:
    text = pod(
        "[sh, -c]",
        "args:\n        - |\n          export A=5\n          exec vllm serve /m/Known \\\n            -tp 8\n",
    )
    (launch,) = scene(text).launches
    assert look(launch, "environment A") == ("known", "5")
    line, column = place(launch, "argument --tensor-parallel-size")
    assert text.splitlines()[(line or 0) - 1] == "            -tp 8"
    assert column == 13


def test_groups() -> None:
    deployment = """\
apiVersion: infera.amd.com/v1alpha1
kind: InferaDeployment
metadata: {name: NAME}
spec:
  services:
    server: {componentType: server, extraPodSpec: {containers: [{name: main, command: [python3, -m, the.router]}]}}
    one: {role: prefill, extraPodSpec: {containers: [{name: main, command: [vllm, serve, /m]}]}}
    two: {role: decode, extraPodSpec: {containers: [{name: main, command: [vllm, serve, /m]}]}}
"""
    read = scene(deployment.replace("NAME", "a") + "---\n" + deployment.replace("NAME", "b"), pod(), pod())
    assert [launch.role for launch in read.launches[:3]] == ["server", "prefill", "decode"]
    groups = [len(group.engines()) for group in read.groups()]
    assert groups == [2, 2, 2], "each InferaDeployment is a group, the rest is one"


@pytest.mark.parametrize(
    ("stated", "expected"), [(2, ("known", 2)), ([{"name": "a"}], ("known", 1)), (None, ("unknown", None))]
)
def test_nodes_of_the_site(stated: Any, expected: tuple[str, Any]) -> None:
    (launch,) = scene(pod(), site={} if stated is None else {"nodes": stated}).launches
    assert look(launch, "derived nodes") == expected


_FORMS = {
    "block": "args:\n  - |\n    export MODE=0\n    export MODE=1\n    exec vllm serve /m/Known -tp 8\n",
    "folded": "args:\n  - >\n    export MODE=0; export MODE=1;\n\n    exec vllm serve\n    /m/Known -tp 8\n",
    "double": 'args: ["export MODE=0\\nexport MODE=1\\nexec vllm serve \\\n  /m/Known -tp 8\\n"]\n',
    "single": "args:\n- 'export MODE=0\n\n  export MODE=1\n\n  exec vllm serve /m/Known -tp 8'\n",
    "plain": "args:\n- export MODE=0; export MODE=1;\n  exec vllm serve /m/Known -tp 8\n",
}


@pytest.mark.parametrize("form", _FORMS)
def test_words_of_a_script_stand_where_they_are_written(form: str) -> None:
    container = "name: engine\nimage: example/i\ncommand: [sh, -c]\n" + _FORMS[form]
    indented = "\n".join("      " + line for line in container.splitlines())
    text = f"kind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n    -\n{indented}\n"
    (launch,) = scene(text).launches
    lines = text.splitlines()
    for field, word in (("argument --tensor-parallel-size", "-tp"), ("environment MODE", "MODE=1")):
        line, column = place(launch, field)
        assert line is not None
        assert column is not None
        assert lines[line - 1][column - 1 :].startswith(word)


def test_a_script_behind_an_alias_stands_where_the_alias_does() -> None:
    text = (
        "kind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
        '  - {name: a, image: i, command: [sh, -c], args: &run ["\\n\\n\\nvllm serve /m/Known -tp 8"]}\n'
        "  - {name: b, image: i, command: [sh, -c], args: *run}\n"
    )
    first, second = scene(text).launches
    assert [place(one, "argument --tensor-parallel-size")[0] for one in (first, second)] == [5, 6]
