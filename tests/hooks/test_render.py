"""``moeplan render``: one plugin is chosen, asked, and not believed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from moeplan.catalogue.registries import load_registry
from moeplan.cli.main import main
from moeplan.model.plan import Plan, Scenario
from moeplan.planning.builder import plan as make_plan
from moeplan.wire.documents import dump_document
from tests.hooks.plugins import HEAD, add_plugin, hook

_HEAD = (
    HEAD
    + '''
from moeplan.model.rendering import *

POD = """\\
apiVersion: v1
kind: Pod
metadata: {name: engine, namespace: %s}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  containers:
  - {name: main, image: 'vllm@sha256:%s'}
"""


def rendering(site, image="a" * 64):
    name = site["nodes"][0]["name"]
    file = RenderedFile("20-engine.yaml", "manifest", POD % (site["namespace"], name, image))
    return Rendering((file,), (GuideStep("deploy", "Apply", "All.", ("kubectl apply -k .",), 60),))
'''
)
_GOOD = hook("moeplan_render(plan, site)", "return rendering(site)")
_INFO = """
NEEDS = (
    SiteNeed(key="namespace", title="the namespace", how="choose one", example="infera"),
    SiteNeed(key="nodes[].modelDirectory", title="the models' directory", how="look", roles=("serve",)),
    SiteNeed(key="driver", title="the driver", how="look", required=False),
)


@hookimpl
def moeplan_runtime():
    return RuntimeInfo(
        engine={engine!r}, vendor={vendor!r}, plugin={plugin!r}, version={version!r},
        profiles=tuple(
            Profile(one, "one node", "reported_failing" if "bad" in one else "measured", "it ran", SOURCE, NEEDS)
            for one in {profiles!r}
        ),
        rules=tuple(FindingRule(*rule) for rule in {rules!r}),
    )
"""
SITE = """\
kind: site
schemaVersion: 1.0.0
runtime: vllm-made
profile: one
namespace: serving
nodes:
- name: node-a
  roles: [serve]
  modelDirectory: /data/models
"""


@pytest.fixture
def plan() -> Plan:
    """Return a plan that is not blocked, for one node."""
    return make_plan(load_registry(), Scenario("kimi-k3", "mi355x", 8))


@pytest.fixture
def made(installed: Path, plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a plan and a site."""
    path = tmp_path_factory.mktemp("made")
    (path / "plan.json").write_bytes(dump_document(plan))
    (path / "site.yaml").write_text(SITE)
    return path


def add(installed: Path, body: str = _GOOD, name: str = "vllm-made") -> None:
    add_plugin(installed, name, body, head=_HEAD, info=_INFO, profiles=("one", "bad/two"), rules=())


def run(made: Path, *more: str) -> int:
    return main(["render", str(made / "plan.json"), "--site", str(made / "site.yaml"), "-o", str(made / "out"), *more])


def edit(made: Path, old: str, new: str) -> None:
    assert old in SITE
    (made / "site.yaml").write_text(SITE.replace(old, new))


def test_it_writes_what_kubectl_takes(made: Path, installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(installed)
    assert run(made, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["plugin"], told["profile"]) == ("manifest_set", "vllm-made@1.0", "one")
    assert (made / "out" / "manifest-set.json").read_bytes() == dump_document_of(told)
    assert sorted(one.name for one in (made / "out").iterdir()) == [
        "20-engine.yaml",
        "README.md",
        "kustomization.yaml",
        "manifest-set.json",
    ]
    pod = yaml.safe_load((made / "out" / "20-engine.yaml").read_text())
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "node-a"}
    assert pod["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "moeplan"
    assert run(made) == 0
    assert "unchanged" in capsys.readouterr().err


def dump_document_of(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def test_kubectl_builds_the_directory(made: Path, installed: Path) -> None:
    add(installed)
    assert run(made) == 0
    try:
        shown = subprocess.run(
            ["kubectl", "kustomize", str(made / "out")], capture_output=True, text=True, timeout=60, check=True
        )
    except FileNotFoundError:
        pytest.skip("kubectl is not installed")
    assert yaml.safe_load(shown.stdout) == yaml.safe_load((made / "out" / "20-engine.yaml").read_text())


def test_diff_writes_nothing_and_says_whether_it_differs(
    made: Path, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(installed)
    assert run(made, "--diff") == 1
    assert not (made / "out").exists()
    assert "+++ b/20-engine.yaml" in capsys.readouterr().out
    assert run(made) == 0
    capsys.readouterr()
    assert run(made, "--diff") == 0
    assert capsys.readouterr().out == ""
    edit(made, "node-a", "node-b")
    assert run(made, "--diff") == 1
    lines = capsys.readouterr().out.splitlines()
    assert "-    kubernetes.io/hostname: node-a" in lines
    assert "+    kubernetes.io/hostname: node-b" in lines
    assert run(made, "--diff", "--json") == 1
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["changes"]] == [
        "20-engine.yaml",
        "README.md",
        "manifest-set.json",
    ]


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("runtime: vllm-made\n", "", "$.runtime"),
        ("profile: one\n", "", "$.profile"),
        ("namespace: serving\n", "", "$.namespace"),
        ("  modelDirectory: /data/models\n", "", "$.nodes[0].modelDirectory"),
        ("/data/models", "null", "$.nodes[0].modelDirectory"),
    ],
)
def test_a_value_that_is_not_filled_in_is_named_by_its_key(
    old: str, new: str, path: str, made: Path, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(installed)
    edit(made, old, new)
    assert run(made, "--json") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["path"] == path
    assert error["code"] in ("site_value_missing", "unfilled_value")
    assert not (made / "out").exists()


def test_every_value_that_lacks_is_named_at_once(
    made: Path, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that the profile says to need, and those that only the plugin's own reading finds."""
    body = (
        "from moeplan.errors import InputRefusedError, Issue",
        "raise InputRefusedError(Issue('$.modelNames.target', 'site_value_missing', 'not given: the directory'))",
    )
    add(installed, hook("moeplan_render(plan, site)", *body))
    (made / "site.yaml").write_text(SITE.replace("namespace: serving\n", "").replace("  model", "  # model"))
    assert run(made, "--json") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    paths = [issue["path"] for issue in error["issues"]]
    assert sorted(paths) == ["$.modelNames.target", "$.namespace", "$.nodes[0].modelDirectory"]


@pytest.mark.parametrize(
    ("devices", "line", "path", "code"),
    [
        (8, "hardware: h200", "$.hardware", "SITE-HARDWARE"),
        (8, "acceleratorsPerNode: 16", "$.acceleratorsPerNode", "SITE-PER-NODE"),
        (16, "", "$.nodes", "SITE-NODES"),
        (4, "", "$.readiness.status", "PLAN-BLOCKED"),
    ],
)
def test_what_the_core_finds_between_plan_and_site_is_refused(
    devices: int, line: str, path: str, code: str, made: Path, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What ``check`` calls an error is not rendered, unless the site acknowledges it. Four MI355X hold no Kimi-K3."""
    add(installed)
    (made / "plan.json").write_bytes(dump_document(make_plan(load_registry(), Scenario("kimi-k3", "mi355x", devices))))
    site = f"{SITE}{line}\n"
    (made / "site.yaml").write_text(site)
    assert run(made, "--json") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["path"], error["code"]) == (path, code)
    (made / "site.yaml").write_text(f"{site}acknowledged: [{{id: {code}, reason: a drill}}]\n")
    assert run(made) == 0


def test_a_node_of_another_role_lacks_nothing(made: Path, installed: Path) -> None:
    add(installed)
    edit(made, "modelDirectory: /data/models\n", "modelDirectory: /data/models\n- name: b\n  roles: [server]\n")
    assert run(made) == 0


@pytest.mark.parametrize(
    ("options", "path"),
    [
        (("--profile", "other"), "$.deployment.profile"),
        (("--role", f"serve=sha256:{'b' * 64}"), "$.deployment.roles[0].runtime.digest"),
        (("--profile", "one", "--role", f"serve=sha256:{'a' * 64}"), None),
    ],
)
def test_a_plan_for_something_else_is_refused(
    options: tuple[str, ...], path: str | None, made: Path, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(installed)
    (made / "plan.json").unlink()
    assert main(["plan", "kimi-k3", "mi355x", "--devices", "8", *options, "-o", str(made / "plan.json")]) == 0
    capsys.readouterr()
    assert run(made, "--json") == (0 if path is None else 2)
    told = json.loads(capsys.readouterr().out)
    assert path is None or (told["error"]["path"], told["error"]["source"]) == (path, "plan")


def test_a_failing_profile_is_refused_until_it_is_accepted(
    made: Path, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(installed)
    edit(made, "profile: one", "profile: bad/two")
    assert run(made) == 2
    assert "accept it with --accept bad/two" in capsys.readouterr().err
    assert run(made, "--accept", "one") == 2
    assert run(made, "--accept", "bad/two", "--json") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["status"], told["accepted"]) == ("reported_failing", ["bad/two"])
    edit(made, "profile: one", "profile: one")
    assert run(made, "--accept", "bad/two") == 2


def test_the_plugin_is_told_what_is_accepted(made: Path, installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (
        "known = [one['id'] for one in site.get('acknowledged', ())]",
        "if known != ['one']:",
        "    raise InputRefusedError(Issue('$.deployment.profile', 'fails', f'fails with this model: {known}'))",
        "return rendering(site)",
    )
    add(installed, "from moeplan.errors import *\n" + hook("moeplan_render(plan, site)", *lines))
    assert run(made) == 2
    assert "fails with this model: []" in capsys.readouterr().err
    assert run(made, "--accept", "one", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["accepted"] == ["one"]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("return rendering(site, 'b' * 63)",), "image_without_digest"),
        (("site = {**site, 'namespace': 'other'}", "return rendering(site)"), "other_namespace"),
        (("import itertools", "return rendering(site, f'{next(COUNT):064x}')"), "not_deterministic"),
        (("return None",), "none_returned"),
        (("raise InputRefusedError(Issue('$.nodes[0]', 'no_such', 'no such node'))",), "no_such"),
    ],
)
def test_the_plugin_is_not_believed(
    lines: tuple[str, ...], code: str, made: Path, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "\nimport itertools\nfrom moeplan.errors import *\nCOUNT = itertools.count()\n"
    add(installed, head + hook("moeplan_render(plan, site)", *lines))
    assert run(made, "--json") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == code, error
    assert not (made / "out").exists()


def test_a_plugin_that_renders_nothing_or_does_not_load_is_named(
    made: Path, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(installed, "")
    assert run(made, "--json") == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "no_answer"
    add(installed, "raise RuntimeError", name="vllm-other")
    edit(made, "vllm-made", "vllm-other")
    assert run(made, "--json") == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "import_failed"
