"""``moeplan plugins new`` and ``update``: what is made fails until it knows something, then passes in one command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from moeplan.cli.main import main
from moeplan.workflows import author_plugin
from moeplan.workflows.author_plugin import template_versions

FACT = """[
  {
    "id": "SG-PORT-1",
    "title": "a port that only root may open",
    "kind": "lint",
    "severity": "error",
    "silent": "no",
    "basis": "documented",
    "violated": {"field": "argument --port", "below": 1024},
    "message": "--port is {argument --port}",
    "consequence": "The server cannot bind it.",
    "remedy": "A port from 1024 on.",
    "sources": [{"source": "ip(7)", "locator": "ip_unprivileged_port_start"}],
    "logs": [{"literals": ["bind: permission denied on the serving port"], "expectation": "must_be_zero"}]
  }
]
"""
SUITE = '''"""The plugin under moeplan's suite."""

from moeplan.testing import LintCase, LintGolden, LogCase, RuntimePluginSuite


class TestPlugin(RuntimePluginSuite):
    """sglang on amd."""

    plugin = "sglang-amd"
    negative = (LintCase("SG-PORT-1", "cases/low-port.sh"), LogCase("SG-PORT-1", "cases/low-port.log"))
    golden = (LintGolden("cases/low-port.sh", "golden/low-port.json"),)
'''
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def run(*words: str | Path, cwd: Path, check: bool = True, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST", "GIT_"))}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=300, env=environment | more
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment that has what this one has, moeplan among it, and is written to alone."""
    directory = tmp_path_factory.mktemp("clean")
    venv.create(directory, with_pip=False)
    python = directory / "bin" / "python"
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=directory).stdout.strip()
    here = sysconfig.get_path("purelib")
    Path(site, "moeplan-of-the-tests.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    return python


@pytest.fixture
def made(tmp_path: Path) -> Path:
    where = tmp_path / "moeplan-sglang-amd"
    assert main(["plugins", "new", "sglang-amd", str(where)]) == 0
    return where


def fill(made: Path) -> None:
    """Do what an author does: a fact, two negative cases, a golden."""
    (made / "moeplan_sglang_amd" / "facts.json").write_text(FACT)
    (made / "tests" / "test_suite.py").write_text(SUITE)
    cases = made / "tests" / "cases"
    cases.mkdir()
    (cases / "low-port.sh").write_text("exec sglang serve --model m --port 80\n")
    (cases / "low-port.log").write_text("ERROR bind: permission denied on the serving port 80\n")


def test_it_fails_until_it_knows_something_and_then_passes_in_one_command(made: Path, clean: Path) -> None:
    run(clean, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-e", made, cwd=made)
    suite = (clean, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    told = run(*suite, cwd=made, check=False)
    assert told.returncode == 1
    assert "3 failed, 13 passed" in told.stdout
    for what in ("add a fact to its facts file", "there is no negative case", "there is no golden"):
        assert what in told.stdout
    fill(made)
    told = run(*suite, cwd=made, check=False, MOEPLAN_REGENERATE="1")
    assert "golden/low-port.json was written" in told.stdout
    assert "1 failed, 15 passed" in told.stdout
    assert '"message": "--port is 80"' in (made / "tests" / "golden" / "low-port.json").read_text()
    assert "16 passed" in run(*suite, cwd=made).stdout
    run("sh", "ci.sh", cwd=made, PATH=f"{clean.parent}:{os.environ['PATH']}")
    listed = run(clean, "-m", "moeplan.cli.main", "plugins", "--plugin", "sglang-amd", cwd=made).stdout
    assert "sglang-amd  0.1.0    sglang  amd" in listed


@pytest.mark.parametrize(("name", "engine"), [("vllm-made.gpu", "vllm"), ("x-y", "x")])
def test_names_become_a_package(tmp_path: Path, name: str, engine: str) -> None:
    assert main(["plugins", "new", name, str(tmp_path / "made"), "--vendor", "somebody"]) == 0
    package = "moeplan_" + name.replace("-", "_").replace(".", "_")
    text = (tmp_path / "made" / package / "plugin.py").read_text()
    assert f'engine="{engine}"' in text
    assert 'vendor="somebody"' in text
    compile(text, package, "exec")
    assert sys.executable not in (tmp_path / "made" / ".copier-answers.yml").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("vllm", "made"), "the name tells no vendor"),
        (("Vllm-X", "made"), "no name of a plugin"),
        (("vllm-x", "."), "something is there already"),
        (("vllm-x", "made", "--engine", "{{ 7 * 7 }}"), "no engine of a plugin"),
    ],
)
def test_what_cannot_be_made_is_named_and_nothing_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text("")
    assert main(["plugins", "new", *words]) == 2
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_without_copier_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(author_plugin, "find_spec", lambda _name: None)
    assert main(["plugins", "new", "vllm-x", str(tmp_path / "made")]) == 2
    assert "pip install 'moeplan[authoring]'" in capsys.readouterr().err


def commit(made: Path) -> None:
    run("git", "add", "-A", cwd=made)
    run("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "a change", cwd=made)


def test_a_newer_template_is_taken_in_and_the_authors_changes_stay(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(made)
    plugin = made / "moeplan_sglang_amd" / "plugin.py"
    plugin.write_text(plugin.read_text().replace("profiles=(),", "profiles=(),  # none is known"))
    run("git", "init", "-q", cwd=made)
    commit(made)
    templates = tmp_path / "templates"
    (newest,) = template_versions()
    shutil.copytree(Path(author_plugin.__file__).parents[1] / "plugin_template" / newest, templates / newest)
    shutil.copytree(templates / newest, templates / "1.10.0")
    script = templates / "1.10.0" / "template" / "ci.sh"
    script.write_text(script.read_text() + "python -m build\n")
    monkeypatch.setattr(author_plugin, "_templates", lambda: templates)
    assert template_versions() == (newest, "1.10.0")
    assert main(["plugins", "update", str(made)]) == 0
    assert (made / "ci.sh").read_text().endswith("python -m pytest\npython -m build\n")
    assert "# none is known" in plugin.read_text()
    assert (made / "moeplan_sglang_amd" / "facts.json").read_text() == FACT
    assert "_commit: v1.10.0" in (made / ".copier-answers.yml").read_text()
    changed = run("git", "status", "--porcelain", cwd=made).stdout.split()
    assert changed == ["M", ".copier-answers.yml", "M", "ci.sh"]
    assert main(["plugins", "update", str(made)]) == 2, "changes that are not committed could be lost"
    assert main(["plugins", "update", str(tmp_path)]) == 2
    assert "this distribution is not from the template" in capsys.readouterr().err


def test_a_distribution_in_no_repository_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "new", "sglang-amd", str(tmp_path / "made")]) == 0
    assert main(["plugins", "update", str(tmp_path / "made")]) == 2
    assert "git init" in capsys.readouterr().err


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["plugins", "new", "sglang-amd", str(tmp_path / "file" / "made")]) == 2
    told = capsys.readouterr().err
    assert "cannot write: Not a directory" in told
    assert "Errno" not in told
