"""``lint`` with plugins: whose a document is, what each is shown, comments that accept, formats, exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from moeplan.cli.main import main
from moeplan.errors import InputError
from moeplan.findings.listed import Listed
from moeplan.workflows.lint import lint
from tests.hooks.plugins import add_plugin, hook

OWNS = hook(
    "moeplan_owns_manifest(manifest)",
    "if isinstance(manifest, str):",
    "    return WORD in manifest",
    "return manifest.get('metadata', {}).get('name') == WORD",
)
LINTS = """
from moeplan.manifests.yaml_positions import load_manifests

@hookimpl
def moeplan_lint(request, site):
    found = []
    for source in request.sources:
        seen = source.documents
        lines = [number for number, line in enumerate(source.text.splitlines(), 1) if "bad" in line]
        for line in lines:
            found.append(finding(file=source.name, line=line, column=3))
        if site.get("driver") == "580":
            found.append(finding("T-2", file=source.name, line=1, column=1))
        found.append(finding("T-3", file=source.name, line=1, column=1, documents=seen))
    return tuple(found)
"""
RULES = (("T-1", "shared"), ("T-2", "shared"), ("T-3", "shared"))
HEAD_FIX = """
_finding = finding
def finding(id="T-1", documents=False, **more):
    import attrs
    made = _finding(id, **more)
    severity = {"T-1": "error", "T-2": "warning", "T-3": "info"}[id]
    message = f"{documents} {PROFILE}" if documents is not False else "m"
    return attrs.evolve(made, severity=severity, message=message)
PROFILE = None
"""


def plugin(directory: Path, name: str, word: str, more: str = LINTS, **options: Any) -> None:
    add_plugin(directory, name, f"WORD = {word!r}\n" + HEAD_FIX + OWNS + more, rules=RULES, **options)


def doc(name: str, *lines: str, kind: str = "Deployment") -> str:
    template = "  template: {spec: {containers: [{name: c, image: i}]}}" if kind == "Deployment" else "  x: 1"
    return "\n".join([f"kind: {kind}", f"metadata: {{name: {name}}}", "spec:", template, *lines]) + "\n"


def ids(listed: Listed) -> list[tuple[str, str | None, str | None, int | None]]:
    return [(f.id, f.plugin, f.file, f.line) for f in listed.findings if f.severity != "info"]


def told(listed: Listed) -> list[tuple[str | None, str | None, str]]:
    return [(f.plugin, f.file, f.message) for f in listed.findings if f.id == "T-3"]


def test_each_document_goes_to_its_plugin_and_what_runs_nothing_to_all(installed: Path) -> None:
    plugin(installed, "alpha", "a")
    plugin(installed, "beta", "bbb", distribution="beta-dist")
    files = {"one.yaml": (doc("a") + "---\n" + doc("bbb") + "---\n" + doc("claim", kind="Claim")).encode()}
    listed = lint({**files, "run.sh": b"serve a bad\n", "other.yaml": doc("c").encode()})
    assert told(listed) == [
        ("alpha", "one.yaml", "(0, 2) None"),
        ("beta", "one.yaml", "(1, 2) None"),
        ("alpha", "run.sh", "None None"),
    ]
    assert ids(listed) == [("T-1", "alpha", "run.sh", 1)]
    assert listed.judged == {"alpha": 2, "beta": 1}
    assert listed.not_judged == (("other.yaml: document 1 (Deployment)", "no plugin knows it"),)


def test_runtime_gives_all_to_one_plugin(installed: Path) -> None:
    plugin(installed, "alpha", "a")
    plugin(installed, "beta", "bbb", distribution="beta-dist", profiles=("two",))
    files = {"one.yaml": (doc("a") + "---\n" + doc("c")).encode()}
    assert told(lint(files, runtime="beta")) == [("beta", "one.yaml", "(0, 1) None")]
    assert [p for p, _, _ in told(lint(files, profile="two"))] == ["beta"]
    with pytest.raises(InputError, match="no installed plugin has this profile"):
        lint(files, profile="three")
    with pytest.raises(InputError, match="did you mean 'alpha'"):
        lint(files, runtime="alpa")


def test_comments_accept_findings_visibly(installed: Path) -> None:
    plugin(installed, "alpha", "a")
    text = doc("a", "  one: bad  # moeplan: ignore T-1 the mesh does it", "  two: bad", "  # moeplan: ignore T-2 x")
    listed = lint({"f.yaml": text.encode()})
    assert ids(listed) == [("T-1", "alpha", "f.yaml", 6)]
    assert [(one.finding.id, one.line, one.reason) for one in listed.suppressed] == [("T-1", 5, "the mesh does it")]
    script = b"# moeplan: ignore T-1 known\nserve a \\\n  --x bad\nserve bad # moeplan: ignore T-1\n"
    listed = lint({"f.sh": script})
    assert ids(listed) == [("T-1", "alpha", "f.sh", 4), ("MANIFEST", None, "f.sh", 4)]
    assert [one.finding.line for one in listed.suppressed] == [3], "the comment covers the whole command"


def test_the_readers_own_faults_are_findings(installed: Path) -> None:
    plugin(installed, "alpha", "a")
    listed = lint({"f.yaml": (doc("a") + "metadata: {name: a}\n").encode()})
    assert ids(listed) == [("MANIFEST", None, "f.yaml", 5)]
    with pytest.raises(InputError) as caught:
        lint({"f.yaml": b"a: [", "g.yaml": b"\xff"})
    assert [issue.path.split(":")[0] for issue in caught.value.issues] == ["f.yaml", "g.yaml"]


def test_a_plugin_that_fails_leaves_its_documents_unjudged(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(installed, "alpha", "a", hook("moeplan_lint(request, site)", "raise ValueError('no')"))
    plugin(installed, "beta", "bbb", distribution="beta-dist")
    (installed / "f.yaml").write_text(doc("a") + "---\n" + doc("bbb"))
    assert main(["lint", str(installed / "f.yaml"), "--json"]) == 3
    out = json.loads(capsys.readouterr().out)
    assert [failure["code"] for failure in out["summary"]["failures"]] == ["raised"]
    assert out["summary"]["notJudged"][0]["why"] == "its plugin failed"
    assert out["summary"]["judged"] == {"beta": 1}


@pytest.mark.parametrize(("severity", "fail_on", "code"), [("bad", "error", 1), ("ok", "error", 0)])
def test_exit_code(installed: Path, severity: str, fail_on: str, code: int) -> None:
    plugin(installed, "alpha", "a")
    (installed / "f.sh").write_text(f"serve a {severity}\n")
    assert main(["lint", str(installed / "f.sh"), "--fail-on", fail_on]) == code


def test_warnings_fail_where_asked_and_nothing_judged_is_3(
    installed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin(installed, "alpha", "a")
    (installed / "f.sh").write_text("serve a\n")
    (installed / "site.yaml").write_text("driver: 580\n")
    arguments = ["lint", str(installed), "--site", str(installed / "site.yaml")]
    assert main(arguments) == 0
    assert main([*arguments, "--fail-on", "warning"]) == 1
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"something else")))
    capsys.readouterr()
    assert main(["lint", "-"]) == 3
    assert "-: not judged: no plugin knows it" in capsys.readouterr().out


def test_json_has_the_keys_that_programs_read(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(installed, "alpha", "a")
    (installed / "f.sh").write_text("serve a bad\n")
    assert main(["lint", str(installed / "f.sh"), "--format", "json"]) == 1
    finding = next(one for one in json.loads(capsys.readouterr().out)["findings"] if one["id"] == "T-1")
    wanted = {"id", "plugin", "severity", "file", "line", "column", "path", "message", "consequence", "silent"}
    assert wanted | {"remedy", "sources"} <= set(finding)
    assert (finding["plugin"], finding["line"], finding["column"]) == ("alpha", 1, 3)
    assert finding["sources"] == [{"source": "a document", "locator": "section 1"}]


def test_sarif_and_github(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin(installed, "alpha", "a")
    path = installed / "a b.sh"
    path.write_text("serve a bad\nserve a bad # moeplan: ignore T-1 known\n")
    assert main(["lint", str(path), "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    (run,) = log["runs"]
    errors = [result for result in run["results"] if result["ruleId"] == "T-1"]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["T-1", "T-3"]
    assert all(run["tool"]["driver"]["rules"][r["ruleIndex"]]["id"] == r["ruleId"] for r in run["results"])
    place = errors[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("/a%20b.sh")
    assert place["region"] == {"startLine": 1, "startColumn": 3}
    assert errors[1]["suppressions"] == [{"kind": "inSource", "justification": "known"}]
    assert main(["lint", str(path), "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error", "::notice"] or len(lines) == 2
    assert "line=1,col=3,title=T-1::m. c Remedy: r" in "".join(lines)
