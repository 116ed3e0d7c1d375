"""``collect endpoint --load-image``: a stub kubectl whose pod is this machine, the stub server, and each failure."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main
from moeplan.workflows.collect_in_pod import client_program
from tests.stub_server.server import Stub, serving

IMAGE = "registry.example/vllm@sha256:" + "ab" * 32
LOAD = (
    *("--requests", "4", "--input-tokens", "20", "--output-tokens", "3", "--concurrency", "2"),
    *("--warmup-requests", "1", "--trials", "2", "--load-image", IMAGE, "--kube-context", "ctx", "-n", "prod"),
)
FAKE = """#!{python}
import json, os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
mode = open(os.path.join(here, "mode")).read()
words = [word for word in sys.argv[1:] if not word.startswith(("--context", "--namespace"))]
data = sys.stdin.buffer.read() if words[0] in ("create", "exec") else b""
with open(os.path.join(here, "calls"), "a") as log:
    log.write(json.dumps([sys.argv[1:], data.decode() if words[0] == "create" else len(data)]) + "\\n")
def fail(text):
    sys.stderr.write(text + "\\n")
    sys.exit(1)
if words[0] == "create" and mode == "forbidden":
    fail('Error from server (Forbidden): pods is forbidden: User "u" cannot create resource "pods"')
if words[0] == "get":
    if mode == "gone":
        fail('Error from server (NotFound): pods "x" not found')
    states = {{
        "image": {{"waiting": {{"reason": "ImagePullBackOff", "message": "manifest unknown"}}}},
        "python": {{"terminated": {{"reason": "StartError", "message": "python3: executable file not found"}}}},
        "pending": {{}},
    }}
    status = {{"phase": "Pending" if mode in states else "Running"}}
    status["containerStatuses"] = [{{"state": states.get(mode, {{"running": {{}}}})}}]
    if mode == "pending":
        status["conditions"] = [{{"status": "False", "message": "0/3 nodes are available: Insufficient cpu"}}]
    print(json.dumps({{"status": status}}))
if words[0] == "exec":
    inside = words[words.index("--") + 1 :]
    done = subprocess.run([sys.executable, "-I", *inside[1:]], input=data, capture_output=True)
    sys.stderr.buffer.write(done.stderr)
    out = done.stdout
    if b'"do": "load"' in data:
        if mode == "dies":
            fail("error: stream error: stream ID 1; INTERNAL_ERROR")
        if mode == "cut":
            out = out[:-7]
        if mode == "changed":
            out = out[:-7] + b"x" * 7
    sys.stdout.write("Defaulted container\\n")
    sys.stdout.flush()
    sys.stdout.buffer.write(out)
    sys.exit(done.returncode)
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").write_text(FAKE.format(python=sys.executable), "utf-8")
    (folder / "kubectl").chmod(0o755)
    (folder / "mode").write_text("ok")
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


def calls(cluster: Path) -> list[list[Any]]:
    return [json.loads(line) for line in (cluster / "calls").read_text().splitlines()]


def url(stub: Stub) -> str:
    return f"http://127.1:{stub.port}"  # not this machine by its name


def test_the_pod_sends_what_the_plan_says_and_is_deleted(
    cluster: Path, collect: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENDPOINT_KEY", "sk-very-secret")
    with serving("ok") as stub:
        code, made = collect(url(stub), *LOAD, "--api-key-env", "ENDPOINT_KEY")
    assert code == 0
    assert len(stub.bodies) == 2 * (1 + 4)
    assert made.run["state"] == "closed"
    assert [record["payload"]["path"] for record in made.records] == ["service", "service"]
    rows = made.table("requests", 2)
    assert [row["output_tokens"] for row in rows] == [3, 3, 3, 3]
    told = calls(cluster)
    manifest = json.loads(told[0][1])
    name = manifest["metadata"]["name"]
    assert manifest["spec"]["containers"][0]["image"] == IMAGE
    assert manifest["spec"]["automountServiceAccountToken"] is False
    assert all(words[:2] == ["--context=ctx", "--namespace=prod"] for words, _data in told)
    assert [words[2] for words, _data in told][-1] == "delete"
    assert [words[3:5] for words, _data in told if words[2] == "delete"] == [["pod", name]]
    assert "sk-very-secret" not in (cluster / "calls").read_text()


@pytest.mark.parametrize(
    ("mode", "message", "word"),
    [
        ("forbidden", "the cluster refuses create", "--render-only"),
        ("gone", "the pod is gone", "not found"),
        ("image", "the image is not pulled", "manifest unknown"),
        ("python", "the image has no python3", "--load-image"),
        ("pending", "does not run after 0 s", "Insufficient cpu"),
        ("dies", "ended before its answer", "INTERNAL_ERROR"),
        ("cut", "the answer", "not whole"),
        ("changed", "the answer", "digest"),
    ],
)
def test_each_failure_is_named_and_leaves_no_pod(
    mode: str, message: str, word: str, cluster: Path, stated: list[str], tmp_path: Path, capsys: Any
) -> None:
    (cluster / "mode").write_text(mode)
    out = tmp_path / "out"
    with serving("ok") as stub:
        words = ["collect", "endpoint", "--url", url(stub), "--tokenizer", "demo/tiny-moe", *stated, *LOAD]
        assert main([*words, "--warmup-requests", "0", "--pod-ready-within", "0", "-o", str(out)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert word in told
    assert calls(cluster)[-1][0][2] == "delete"
    if mode in ("dies", "cut", "changed"):
        (manifest,) = out.glob("evidence/*.json")
        run = json.loads(manifest.read_bytes())
        assert (run["state"], [trial["state"] for trial in run["trials"]]) == ("open", ["aborted"])
    else:
        assert not out.exists()


def test_render_only_prints_the_pod_and_the_role_and_calls_nothing(
    cluster: Path, stated: list[str], tmp_path: Path, capsys: Any
) -> None:
    words = ["collect", "endpoint", "--url", "http://engine.prod.svc:8000", "--tokenizer", "demo/tiny-moe", *stated]
    assert main([*words, *LOAD, "--render-only", "-o", str(tmp_path / "out")]) == 0
    role, pod = json.loads(capsys.readouterr().out)["items"]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"create", "get", "delete"}
    assert pod["spec"]["activeDeadlineSeconds"] == 86_400
    assert not (cluster / "calls").exists()


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--load-image", "vllm/vllm-openai:latest"), "digest"),
        (("--url", "http://localhost:8000"), "localhost"),
        (("--through", "port-forward"), "localhost"),
        (("--tool", "aiperf"), "--tool"),
        (("--namespace", "-x y"), "--namespace"),
    ],
)
def test_what_a_pod_cannot_do_is_refused(
    more: tuple[str, str], word: str, cluster: Path, stated: list[str], tmp_path: Path, capsys: Any
) -> None:
    words = ["collect", "endpoint", "--url", "http://engine.prod.svc:8000", "--tokenizer", "demo/tiny-moe", *stated]
    assert main([*words, *LOAD, f"{more[0]}={more[1]}", "-o", str(tmp_path / "out")]) == 2
    assert word in capsys.readouterr().err
    assert not (cluster / "calls").exists()


def test_the_client_needs_nothing_but_the_standard_library_and_msgspec(tmp_path: Path) -> None:
    program = tmp_path / "client.zip"
    program.write_bytes(client_program())
    script = (
        f"import sys; sys.path.insert(0, {str(program)!r}); import moeplan.collectors.pod_client; "
        "print(sorted({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names) - {'__main__'}))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['attr', 'attrs', 'moeplan']"
