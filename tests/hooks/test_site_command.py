"""``moeplan site``: from the plugin's needs to a valid file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import moeplan
from moeplan.cli.main import main
from moeplan.model.site import Site
from moeplan.site.reading import read_site
from moeplan.wire.documents import identify, load_document
from tests.hooks.plugins import add_plugin

INFO = """
@hookimpl
def moeplan_runtime():
    needs = (
        SiteNeed(key="namespace", title="Namespace of the deployment", how="kubectl get namespaces", example="serving"),
        SiteNeed(key="nodes[].address", title="Address", how="kubectl get nodes -o wide", roles=("leader", "worker")),
        SiteNeed(key={key!r}, title="Ports", how="choose", default="8000"),
    )
    return RuntimeInfo(
        engine="vllm", vendor="test", plugin="vllm-test", version="1.0", rules=(),
        profiles=(Profile("one", "title", "measured", "it ran", SOURCE, needs),),
    )
"""


def _install(directory: Path, key: str = "ports.serve") -> None:
    add_plugin(directory, "vllm-test", info=INFO.replace("{key!r}", repr(key)).replace("{", "{{").replace("}", "}}"))


def test_from_init_to_a_valid_site(installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _install(installed)
    path = tmp_path / "site.yaml"
    assert main(["site", "init", "--runtime", "vllm", "--profile", "one", "-o", str(path)]) == 0
    assert capsys.readouterr().out == ""
    text = path.read_text("utf-8")
    assert text == moeplan.init_site("vllm-test", "one")
    assert (
        "# Namespace of the deployment\n# Find it: kubectl get namespaces\n# Example: serving\nnamespace: null" in text
    )
    assert "  roles: [leader]\n" in text
    assert main(["site", "validate", str(path), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is False
    assert {issue["code"] for issue in told["error"]["issues"]} == {"unfilled_value"}
    for old, new in {
        "namespace": "serving", "hardware": "h200", "acceleratorsPerNode": "8", "driver": "'580'",
        "engineVersion": "0.27.1", "target": "Kimi-K3", "acceleratorHour": "'2.99'", "currency": "USD",
        "address": "192.0.2.1", "modelDirectory": "/data", "filesystem": "xfs", "local": "true",
    }.items():  # fmt: skip
        text = text.replace(f"{old}: null", f"{old}: {new}")
    for name in ("a", "b"):
        text = text.replace("name: null", f"name: {name}", 1)
    path.write_text(text, "utf-8")
    assert main(["site", "validate", str(path)]) == 0
    assert capsys.readouterr().out == f"site is valid, {identify(read_site(path))}\n"


def test_init_without_a_file_prints_it_and_faults_are_named(
    installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _install(installed)
    assert main(["site", "init", "--runtime", "vllm", "--profile", "one", "--schema", "s.json"]) == 0
    assert capsys.readouterr().out.startswith("# yaml-language-server: $schema=s.json\n")
    assert main(["site", "init", "--runtime", "vllm", "--profile", "oen"]) == 2
    assert "did you mean 'one'" in capsys.readouterr().err


def test_a_plugin_that_asks_for_what_no_site_has_is_named(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _install(installed, "port.serve")
    assert main(["site", "init", "--runtime", "vllm", "--profile", "one"]) == 2
    assert "plugin vllm-test: need port.serve: a site has no such value" in capsys.readouterr().err


def test_probe_and_merge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe, site, made = tmp_path / "probe.json", tmp_path / "site.yaml", tmp_path / "made.yaml"
    assert main(["site", "probe", "--directory", "/proc", "-o", str(probe), "--json"]) == 0
    assert capsys.readouterr().out.encode() == probe.read_bytes()
    site.write_text("kind: site\nschemaVersion: 1.0.0\nnodes:\n- name: null  # required\n", "utf-8")
    assert main(["site", "merge", str(site), str(probe), "-o", str(made), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["keptComments"] is True
    assert told["filled"][0] == "$.nodes[0].name"
    assert main(["site", "validate", str(made), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    nodes = read_site(made).nodes
    assert isinstance(nodes, tuple)
    assert nodes[0].model_directory == "/proc"
    made.write_text(made.read_text("utf-8").replace("filesystem: proc", "filesystem: xfs"), "utf-8")
    before = made.read_text("utf-8")
    assert main(["site", "merge", str(made), str(probe)]) == 1
    shown = capsys.readouterr()
    assert shown.out == before
    assert "$.nodes[0].storage.filesystem: the site says xfs, the probe proc: left as it is\n" in shown.err
    assert main(["site", "merge", str(made), str(probe), "--prefer", "probe"]) == 0
    assert "filesystem: proc" in capsys.readouterr().out


def test_probe_prints_rows_and_refuses_what_it_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", "probe", "--directory", "/proc/self"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0].split() == ["node", "look", "outcome", "ms", "found,", "or", "why", "not", "how"]
    assert "it is no mount of its own: it lies on the mount /proc" in shown.err
    assert main(["site", "probe", "--directory", "proc"]) == 2
    assert "--directory: not an absolute path" in capsys.readouterr().err
    assert main(["site", "probe", "--node", "a", "--directory", "/data"]) == 2
    assert "--image: a directory on a node is looked at from a pod" in capsys.readouterr().err


def test_a_cluster_that_gives_no_answer_exits_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["site", "probe", "--kube-context", "lab", "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert {look["outcome"] for look in told["looks"]} == {"failed"}


def test_the_python_names_are_those_of_the_page(tmp_path: Path) -> None:
    site = moeplan.parse_partial_site(b"nodes: 2\n")
    assert moeplan.site_values(site) == {"kind": "site", "schemaVersion": "1.0.0", "nodes": 2}
    assert isinstance(load_document(moeplan.dump_document(site), Site), moeplan.Site)
