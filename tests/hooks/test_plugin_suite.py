"""``RuntimePluginSuite``: a good plugin passes all of it, and each test fails for a plugin that breaks just that."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from moeplan.testing import RuntimePluginSuite
from moeplan.testing.hostile import CONTAINERS
from moeplan.testing.suite import REGENERATE

PLUGIN = '''
import json
from pathlib import Path
from moeplan.errors import InputRefusedError, Issue
from moeplan.hooks.specs import hookimpl
from moeplan.model.plugin import *
from moeplan.model.rendering import *

MOEPLAN_API = 1
SOURCE = (FactSource("the engine's manual, version 3", "section 2"),)
COUNT = 0

@hookimpl
def moeplan_runtime():
    return RuntimeInfo(
        engine="vllm", vendor="made", plugin="vllm-made", version="1.0",
        profiles=(Profile("single", "one node", "recipe_only", "No figures are known.", SOURCE),),
        rules=(FindingRule("T-1", "vllm-made-dist"), FindingRule("T-2", "vllm-made-dist")),
    )


def finding(id, **more):
    return PluginFinding(
        id=id, severity="error", path="$", message="too much", consequence="it stops", silent="no", remedy="less",
        sources=SOURCE, **more,
    )


@hookimpl
def moeplan_check(plan, site):
    return (finding("T-2"),) if site.get("driver") == "old" else ()


@hookimpl
def moeplan_log_signatures():
    return (LogSignature(
        id="T-1", severity="error", literals=("the made engine ran out of slots",), expectation="must_be_zero",
        cause="c", remedy="r", sources=SOURCE,
    ),)


@hookimpl
def moeplan_owns_manifest(manifest):
    return "made-engine" in (manifest if isinstance(manifest, str) else str(manifest)) or None


@hookimpl
def moeplan_lint(request, site):
    return tuple(
        finding("T-1", file=source.name, line=number)
        for source in request.sources
        for number, line in enumerate(source.text.splitlines(), 1)
        if "--slots 9" in line
    )


POD = """apiVersion: v1
kind: Pod
metadata: {name: engine, namespace: %s}
spec: {containers: [{name: main, image: 'made-engine@sha256:%s', command: [made-engine, --slots, '8']}]}
"""


@hookimpl
def moeplan_render(plan, site):
    if "namespace" not in site:
        raise InputRefusedError(Issue("$.namespace", "site_value_missing", "no namespace"))
    guide = (GuideStep("deploy", "Apply", "All of it.", ("kubectl apply -k .",), 60),)
    return Rendering((RenderedFile("10-engine.yaml", "manifest", POD % (site["namespace"], "a" * 64)),), guide)
'''
SUITE = """
from moeplan.model.plan import Scenario
from moeplan.testing import CheckCase, LintCase, LintGolden, LogCase, RenderGolden, RuntimePluginSuite

PLAN = Scenario("kimi-k3", "h200", 16)

class TestMade(RuntimePluginSuite):
    plugin = "vllm-made"
    negative = (LintCase("T-1", "wrong.sh"), CheckCase("T-2", PLAN, {"driver": "old"}), LogCase("T-1", "wrong.log"))
    golden = (LintGolden("wrong.sh", "wrong.json"), RenderGolden(PLAN, {"namespace": "serving"}, "rendered"))
    healthy = ("right.sh",)
    healthy_logs = ("right.log",)
    deadline_s = 60
"""
FILES = {
    "wrong.sh": "made-engine --slots 9\n",
    "right.sh": "made-engine --slots 8\n",
    "wrong.log": "ERROR the made engine ran out of slots\n",
    "right.log": "INFO ready\n",
}
README = "A made plugin. T-1: too many slots. T-2: an old driver.\n"


def install(directory: Path, plugin: str = PLUGIN, readme: str = README) -> None:
    (directory / "made_vllm.py").write_text(plugin, "utf-8")
    metadata = directory / "vllm_made_dist-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm-made-dist\nVersion: 1.0\n\n{readme}")
    (metadata / "entry_points.txt").write_text("[moeplan]\nvllm-made = made_vllm\n")


def write_suite(directory: Path, suite: str = SUITE, files: dict[str, str] = FILES) -> Path:
    for name, text in files.items():
        (directory / name).write_text(text)
    path = directory / "made_suite.py"
    path.write_text(suite)
    invalidate_caches()
    return path


def load_suite(directory: Path) -> RuntimePluginSuite:
    found = import_module("made_suite").TestMade()
    assert isinstance(found, RuntimePluginSuite)
    return found


def names_of(suite: RuntimePluginSuite) -> list[str]:
    return [name for name in dir(suite) if name.startswith("test_")]


def failing(suite: RuntimePluginSuite) -> dict[str, str]:
    """Run every test of a suite and return what those that fail say."""
    found = {}
    for name in names_of(suite):
        try:
            getattr(suite, name)()
        except pytest.fail.Exception as failed:
            found[name] = str(failed)
    return found


def with_goldens(directory: Path, monkeypatch: pytest.MonkeyPatch) -> RuntimePluginSuite:
    """Return the suite with goldens of the good plugin; a broken one takes its place afterwards."""
    write_suite(directory)
    for name in ("made_suite", "made_vllm"):
        sys.modules.pop(name, None)
    suite = load_suite(directory)
    monkeypatch.setenv(REGENERATE, "1")
    with pytest.raises(pytest.fail.Exception, match="was written: look at it"):
        suite.test_goldens()
    monkeypatch.delenv(REGENERATE)
    return suite


def reload(directory: Path, plugin: str, readme: str = README, suite: str = SUITE) -> RuntimePluginSuite:
    for name in ("made_suite", "made_vllm"):
        sys.modules.pop(name, None)
    (directory / "vllm_made_dist-1.0.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm-made-dist\nVersion: 1.0\n\n{readme}"
    )
    (directory / "made_vllm.py").write_text(plugin)
    (directory / "made_suite.py").write_text(suite)
    invalidate_caches()
    return load_suite(directory)


@pytest.fixture
def made(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with the good plugin, its suite and goldens."""
    install(installed)
    monkeypatch.chdir(installed)
    with_goldens(installed, monkeypatch)
    return installed


def test_a_good_plugin_passes(made: Path) -> None:
    suite = reload(made, PLUGIN)
    assert failing(suite) == {}
    assert len(names_of(suite)) == 16


BREAKS = {
    "test_it_is_installed": ('"vllm-made", version="1.0"', '"vllm-made", version="2.0"', r"false_name"),
    "test_each_answer_is_accepted": ('finding("T-1", file', 'finding("T-9", file', r"moeplan_lint \[undeclared_id\]"),
    "test_answers_are_the_same_twice_and_everywhere": (
        '(finding("T-2"),)',
        '(finding("T-2", file="plan" if hash("a") % 2 else "site"),)',
        "moeplan_check with the plan of T-2 answers in two ways",
    ),
    "test_inputs_stay_as_they_were": (
        "    return (finding",
        "    object.__setattr__(plan, 'risks', ())\n    return (finding",
        "changed its input",
    ),
    "test_hostile_inputs_are_answered_or_refused": (
        "def moeplan_lint(request, site):\n",
        "def moeplan_lint(request, site):\n    request.sources[0].text.splitlines()[0]\n",
        r"moeplan_lint with an empty script \[raised\].*IndexError",
    ),
    "test_each_statement_has_a_source": (
        '"recipe_only", "No figures are known.", SOURCE',
        '"recipe_only", "No figures are known.", (FactSource("TODO"),)',
        "profile single: the source 'TODO' is none",
    ),
    "test_each_log_signature_is_specific": (
        'literals=("the made engine ran out of slots",)',
        'literals=("ERROR", "slots")',
        "signature T-1",
    ),
    "test_negative_cases_are_found": ('== "old"', '== "older"', "T-2 is not found, but nothing"),
    "test_healthy_cases_are_clean": (
        "    return tuple(\n",
        "    if 'slots 8' in request.sources[0].text and request.sources[0].documents is None:\n"
        "        return (finding('T-1', file=request.sources[0].name, line=1),)\n    return tuple(\n",
        "right.sh:1: T-1",
    ),
    "test_goldens": ("too much", "far too much", "wrong.json is not what comes out"),
}
ALSO = {
    "test_each_answer_is_accepted": ("test_goldens", "test_negative_cases_are_found"),
    "test_inputs_stay_as_they_were": ("test_negative_cases_are_found",),
}
"""What else fails because an answer that is refused finds nothing."""
IMPURE = {
    "opens '/etc/hostname'": "open('/etc/hostname').close()",
    "lists '/etc'": "import os; os.listdir('/etc')",
    "looks at a clock: time.time": "import time; time.time()",
    "looks at a clock: datetime.now": "import datetime; datetime.datetime.now()",
    "draws random numbers: random.random": "import random; random.random()",
    "draws random numbers: uuid.uuid4": "import uuid; uuid.uuid4()",
    "uses the network: socket.__new__": "import socket; socket.socket()",
    "starts a process: subprocess.Popen": "import subprocess; subprocess.run(['true'])",
    "changes something outside: os.mkdir": "import os; os.mkdir('made')",
    "opens 'made'": "open('made', 'w').close()",
}
RENDERS = {
    "placeholder": ("command: [made-engine, --slots, '8']", "command: [made-engine, <SLOTS>]", "a placeholder is left"),
    "image": ("made-engine@sha256:%s'", "made-engine:%s'", "not named by digest"),
    "lint": ("--slots, '8'", "'--slots 9'", "10-engine.yaml:4: T-1"),
    "owner": ("or None", "and None", "does not know it as its own"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_each_test_fails_for_a_plugin_that_breaks_just_it(made: Path, name: str) -> None:
    old, new, told = BREAKS[name]
    assert PLUGIN.count(old) == 1
    found = failing(reload(made, PLUGIN.replace(old, new)))
    if name != "test_it_is_installed":  # nothing can be asked of a plugin that cannot be used
        assert set(found) == {name, *ALSO.get(name, ())}, found
    assert re.search(told, found[name])


@pytest.mark.parametrize("deed", IMPURE)
def test_impure_deeds_are_seen_even_where_the_plugin_hides_them(made: Path, deed: str) -> None:
    body = f"    try:\n        {IMPURE[deed]}\n    except Exception:\n        pass\n    return (finding"
    found = failing(reload(made, PLUGIN.replace("    return (finding", body)))
    assert set(found) == {"test_it_is_pure"}
    assert deed in found["test_it_is_pure"]


def test_deeds_while_loading_are_seen(made: Path) -> None:
    found = failing(reload(made, "open('/etc/hostname').close()\n" + PLUGIN))
    assert "loading it: opens '/etc/hostname'" in found["test_it_is_pure"]


@pytest.mark.parametrize("what", RENDERS)
def test_rendered_files_are_looked_at(made: Path, what: str) -> None:
    old, new, told = RENDERS[what]
    assert PLUGIN.count(old) == 1
    found = failing(reload(made, PLUGIN.replace(old, new)))
    assert set(found) - {"test_goldens"} == {"test_rendered_files_are_complete_and_its_own"}
    assert told in found["test_rendered_files_are_complete_and_its_own"]


def test_an_id_that_nobody_explains_is_told(made: Path) -> None:
    found = failing(reload(made, PLUGIN, readme="A made plugin. T-11 is another.\n"))
    assert found == {
        "test_each_id_is_documented": "T-1 is documented nowhere: make it a fact, or name it in the README\n"
        "T-2 is documented nowhere: make it a fact, or name it in the README"
    }


def test_a_healthy_log_with_an_error_is_told(made: Path) -> None:
    (made / "right.log").write_text(FILES["wrong.log"])
    assert set(failing(reload(made, PLUGIN))) == {"test_healthy_cases_are_clean"}


@pytest.mark.parametrize(
    ("old", "new", "failed", "told"),
    [
        ("    negative = (LintCase", "    negative = () and (LintCase", "negative_case", "there is no negative case"),
        ("    golden = (LintGolden", "    golden = () and (LintGolden", "golden", "there is no golden"),
        (', RenderGolden(PLAN, {"namespace": "serving"}, "rendered")', ",", "golden", "it renders and no golden"),
        ('"vllm-made"', '"vllm-maed"', "fact", "did you mean 'vllm-made'"),
        ('"vllm-made"', '""', "fact", "the suite names no plugin"),
    ],
)
def test_what_a_suite_lacks_fails_and_is_not_skipped(made: Path, old: str, new: str, failed: str, told: str) -> None:
    found = failing(reload(made, PLUGIN, suite=SUITE.replace(old, new)))
    assert told in found[f"test_it_has_a_{failed}"]


def test_a_case_whose_file_is_missing_fails(made: Path) -> None:
    found = failing(reload(made, PLUGIN, suite=SUITE.replace('"T-1", "wrong.sh"', '"T-1", "gone.sh"')))
    assert "a case cannot be read" in found["test_negative_cases_are_found"]
    assert "gone.sh" in found["test_negative_cases_are_found"]


def test_a_plugin_without_an_id_fails(made: Path) -> None:
    rules = 'rules=(FindingRule("T-1", "vllm-made-dist"), FindingRule("T-2", "vllm-made-dist")),'
    found = failing(reload(made, PLUGIN.replace(rules, "rules=(),")))
    assert "add a fact" in found["test_it_has_a_fact"]


def test_a_plugin_that_hangs_is_named(made: Path) -> None:
    body = "    while site.get('driver') == '?':\n        pass\n    return (finding"
    suite = reload(made, PLUGIN.replace("    return (finding", body), suite=SUITE.replace("60", "3"))
    found = failing(suite)
    assert found == {"test_hostile_inputs_are_answered_or_refused": "no answer in 3 s: a hook hangs"}


def test_pytest_collects_it_and_a_person_reads_what_to_do(made: Path) -> None:
    path = made / "test_made.py"
    path.write_text(SUITE.replace("golden = (", "golden = () and ("))
    environment = {**os.environ, "PYTHONPATH": str(made), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(made), str(path)]
    shown = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=made, timeout=120)
    assert shown.returncode == 1
    assert "1 failed, 15 passed" in shown.stdout
    assert 'there is no golden: golden = (LintGolden("cases/wrong.sh", "golden/wrong.json"),)' in shown.stdout


def test_the_authors_guide_has_each_test() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "plugins.md").read_text("utf-8")
    assert re.findall(r"\| `(test_[a-z_]+)` \|$", page, re.MULTILINE) == [
        name for name in vars(RuntimePluginSuite) if name.startswith("test_")
    ]
    assert f"`{REGENERATE}=1`" in page
    assert f"`deadline_s` seconds ({RuntimePluginSuite.deadline_s})" in page
    assert f"{CONTAINERS:,} containers" in page
