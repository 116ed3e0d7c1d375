"""Makes a plugin's distribution from the template that moeplan brings, and takes a newer template into one.

The template lies in the package, one directory a version. Copier wants a git repository: one is made of them for the
call, the same commits on every machine, so that a distribution can be updated without a network.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from moeplan.errors import InputError, Issue, StoreError, escape
from moeplan.model.fields import PLUGIN_PATTERN
from moeplan.model.plan import RUNTIME_PATTERN

__all__ = ["TEMPLATE", "new_plugin", "template_versions", "update_plugin"]

TEMPLATE = "moeplan-plugin-template"
"""Name of the repository while it is there; the distribution's answers file has it as the template's place."""
_ANSWERS = ".copier-answers.yml"
_DEADLINE_S = 300
_SURROUNDINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "moeplan",
    "GIT_AUTHOR_EMAIL": "moeplan@localhost",
    "GIT_COMMITTER_NAME": "moeplan",
    "GIT_COMMITTER_EMAIL": "moeplan@localhost",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
}
"""The template's commits are the same wherever they are made."""


def new_plugin(name: str, directory: Path | str, engine: str | None = None, vendor: str | None = None) -> Path:
    """Make the distribution of a plugin and return where it is.

    Args:
        name: the plugin's name, such as ``sglang-amd``.
        directory: where to; it may not exist, or is empty.
        engine: the engine; None takes the name up to its first hyphen.
        vendor: of the accelerators; None takes the rest of the name.

    Raises:
        InputError: a name that is none, or copier or git is missing.
        StoreError: the directory holds something, or cannot be written.
    """
    head, _, rest = name.partition("-")
    answers = {"name": name, "engine": engine or head, "vendor": vendor or rest}
    _check_names(answers)
    where = Path(os.path.abspath(directory))
    if where.exists() and (not where.is_dir() or any(where.iterdir())):
        told, step = "something is there already", "name a directory that does not exist yet, or an empty one"
        raise StoreError(Issue(escape(str(directory), 400), "foreign_file", told, "nothing", next=step))
    _check_tools()
    data = [word for key, value in answers.items() for word in ("--data", f"{key}={value}")]
    _make(where, directory)
    with _repository() as holder:
        _copier(holder, "copy", "--defaults", "--quiet", *data, TEMPLATE, str(where))
    return where


def _make(where: Path, named: Path | str) -> None:
    from moeplan.wire.files import store_error

    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise store_error(named, error, "write") from None


def update_plugin(directory: Path | str) -> None:
    """Take the newest template into a distribution that was made from an earlier one; the author's changes stay.

    Where both changed the same lines, conflict markers show it, as git's do.

    Raises:
        InputError: it is not from the template, is no git repository or has changes that are not committed.
    """
    where = Path(os.path.abspath(directory))
    if not (where / _ANSWERS).is_file():
        told = f"no {_ANSWERS}: this distribution is not from the template"
        raise InputError(Issue(escape(str(directory), 400), "not_from_template", told, "one that 'plugins new' made"))
    if not any((above / ".git").exists() for above in (where, *where.parents)):
        step = "in it: git init, git add --all, git commit; then update"
        raise InputError(Issue(escape(str(directory), 400), "no_repository", "in no git repository", next=step))
    _check_tools()
    with _repository() as holder:
        _copier(holder, "update", "--defaults", "--quiet", str(where))


def template_versions() -> tuple[str, ...]:
    """Return the versions of the template that this moeplan brings, oldest first."""
    from packaging.version import Version

    listed = _templates().iterdir()
    return tuple(sorted((entry.name for entry in listed if entry.is_dir()), key=Version))


def _templates() -> Traversable:
    return files("moeplan").joinpath("plugin_template")


def _check_names(answers: dict[str, str]) -> None:
    issues = []
    for key, pattern in (("name", PLUGIN_PATTERN), ("engine", RUNTIME_PATTERN), ("vendor", RUNTIME_PATTERN)):
        if not re.fullmatch(pattern.removeprefix("^").removesuffix("$"), answers[key]):
            step = f"give --{key}" if key != "name" else "such as sglang-amd"
            told = f"no {key} of a plugin" if answers[key] else f"the name tells no {key}"
            issues.append(Issue(key, "invalid_name", told, pattern, repr(escape(answers[key], 60)), step))
    if issues:
        raise InputError(*issues)


def _check_tools() -> None:
    from shutil import which

    if find_spec("copier") is None:
        step = "pip install 'moeplan[authoring]'"
        raise InputError(Issue("copier", "not_installed", "copier, which fills the template, is missing", next=step))
    if which("git") is None:
        raise InputError(Issue("git", "not_installed", "git, which holds the template's versions, is missing"))


@contextmanager
def _repository() -> Iterator[Path]:
    """Yield a directory that holds the template as a git repository, each version a commit with its tag."""
    with tempfile.TemporaryDirectory(prefix="moeplan-template-") as directory:
        repository = Path(directory) / TEMPLATE
        repository.mkdir()
        _git(repository, "init", "--quiet", "--initial-branch=main")
        for version in template_versions():
            with as_file(_templates().joinpath(version)) as tree:
                work = f"--work-tree={tree}"
                _git(repository, work, "add", "--all", "--force")
                _git(repository, work, "commit", "--quiet", "--no-gpg-sign", "-m", f"template {version}")
            _git(repository, "tag", f"v{version}")
        _git(repository, "reset", "--quiet", "--hard")
        yield Path(directory)


def _git(repository: Path, *words: str) -> None:
    where = (f"--git-dir={repository / '.git'}", "-c", "core.autocrlf=false", "-c", "core.fileMode=false")
    _run(["git", *where, *words], repository)


def _copier(holder: Path, *words: str) -> None:
    _run([sys.executable, "-m", "copier", *words], holder)


def _run(words: list[str], directory: Path) -> None:
    """Run a command in a directory; a template's place is relative to it."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            words,
            cwd=directory,
            env=environment | _SURROUNDINGS,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(Issue(words[0], "command_failed", escape(f"cannot run it: {error}", 400))) from None
    if done.returncode != 0:
        told = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise InputError(Issue(words[-1], "command_failed", escape(told[-1] if told else "it says nothing", 400)))
