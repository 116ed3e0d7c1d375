"""The environment of a process of this host, and through a kubectl that a test puts on the path."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.model.pseudonyms import pseudonym
from moeplan.site.kubectl import Kubectl
from moeplan.workflows.environment import EngineTarget, PodTarget, see_environment

DIGEST = "sha256:" + "ab" * 32
KEY = b"k" * 32
FAKE = """#!{python}
import json, os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "calls"), "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
words = [word for word in sys.argv[1:] if not word.startswith("--context") and not word.startswith("--namespace")]
if words[0] == "get":
    sys.stdout.write(open(os.path.join(here, "pod.json")).read())
elif os.path.exists(os.path.join(here, "refuse")):
    sys.stderr.write("error: unable to upgrade connection: container not found\\n")
    sys.exit(1)
else:
    inside = words[words.index("--") + 1 :]
    sys.stdout.write("Defaulted container \\"engine\\" out of: engine, sidecar\\n")
    sys.stdout.flush()
    inside = [word.replace("python3", sys.executable) for word in inside]
    sys.exit(subprocess.run(inside, input=sys.stdin.read(), text=True).returncode)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    fake = tmp_path / "kubectl"
    fake.write_text(FAKE.format(python=sys.executable), "utf-8")
    fake.chmod(0o755)
    status = {"containerStatuses": [{"name": "engine", "imageID": f"r/x@{DIGEST}", "restartCount": 0}]}
    pod = {"kind": "Pod", "metadata": {"name": "engine-0"}, "spec": {"nodeName": "gpu-host-7"}, "status": status}
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    return tmp_path


def target(folder: Path) -> PodTarget:
    return PodTarget(Kubectl("ctx", "prod", program=str(folder / "kubectl")), "engine-0", "engine")


def told(seen: Any) -> dict[tuple[str, str], tuple[str, str]]:
    return {(fact.part, fact.name): (fact.value, fact.source) for fact in seen.facts}


def test_a_pod_is_looked_at_over_exec_and_its_node_has_a_pseudonym(cluster: Path) -> None:
    seen = see_environment(EngineTarget(pid=os.getpid()), node=None, key=KEY, pod=target(cluster))
    assert (seen.node, seen.seen_from) == (pseudonym(KEY, "node", "gpu-host-7"), "pod")
    facts = told(seen)
    assert facts["container", "image-container-0"] == (DIGEST, "kubectl")
    assert facts["packages", "numpy"][1] == "engine-probe"
    assert ("operating_system", "memory-bytes") in facts, "the site's probe ran too"
    assert not any("gpu-host-7" in value for value, _source in facts.values())
    calls = [json.loads(line) for line in (cluster / "calls").read_text().splitlines()]
    assert [call[2] for call in calls] == ["get", "exec", "exec"]
    assert calls[1][:7] == [
        "--context=ctx",
        "--namespace=prod",
        "exec",
        "--stdin",
        "engine-0",
        "--container=engine",
        "--",
    ]


def test_this_host_by_pid_with_the_pods_file_beside(cluster: Path) -> None:
    data = (cluster / "pod.json").read_bytes()
    seen = see_environment(EngineTarget(pid=os.getpid()), node="node-a", key=None, pods_file=data)
    assert (seen.node, seen.seen_from) == ("node-a", "engine_process")
    assert told(seen)["container", "image-container-0"][0] == DIGEST
    assert seen.engine_start is not None


@pytest.mark.parametrize(
    ("pid", "name", "node", "code"),
    [
        (4_194_305, None, "node-a", "engine_process"),
        (None, "no such words in any command line", "node-a", "engine_process"),
        (os.getpid(), None, None, "usage"),
    ],
)
def test_what_cannot_be_looked_at_is_named(pid: int | None, name: str | None, node: str | None, code: str) -> None:
    with pytest.raises(InputError) as refused:
        see_environment(EngineTarget(pid, name), node=node, key=None)
    assert refused.value.issues[0].code == code


def test_a_pod_that_cannot_be_reached_is_named_with_kubectls_own_word(cluster: Path) -> None:
    (cluster / "refuse").touch()
    with pytest.raises(InputError) as refused:
        see_environment(EngineTarget(), node="node-a", key=None, pod=target(cluster))
    (issue,) = refused.value.issues
    assert issue.code == "kubectl_failed"
    assert "container not found" in issue.message


def test_another_pods_file_is_refused(cluster: Path) -> None:
    data = (cluster / "pod.json").read_text().replace("engine-0", "other-0").encode()
    with pytest.raises(InputError) as refused:
        see_environment(EngineTarget(), node="node-a", key=None, pod=target(cluster), pods_file=data)
    assert refused.value.issues[0].code == "one_pod"
