"""The lock files: exact, hashed, without an address, and what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

REPOSITORY = Path(__file__).resolve().parents[2]
LOCKS = REPOSITORY / "requirements"
ADDRESS = re.compile(r"://|file:/|git\+|(^|\s)-(i|f)\s|--(extra-)?index-url|--find-links|--trusted-host|\bpypi\b", re.I)
PIN = re.compile(r"(?P<name>[a-z0-9.-]+)==(?P<version>\S+)(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})+)")


def pins(text: str) -> dict[str, Version]:
    """Return each name's exact version; a line that is not a pin with hashes is an error."""
    found: dict[str, Version] = {}
    for line in re.sub(r"\s*\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.M)).splitlines():
        if not line.strip():
            continue
        match = PIN.fullmatch(line)
        if match is None:
            raise ValueError(f"no exact version with hashes: {line}")
        found[canonicalize_name(match["name"])] = Version(match["version"])
    return found


def lock(name: str) -> dict[str, Version]:
    return pins((LOCKS / f"{name}.txt").read_text("utf-8"))


def asked(group: str) -> list[Requirement]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    listed = project["project"]["dependencies"] if group == "run" else project["dependency-groups"][group]
    return [Requirement(text) for text in listed]


@pytest.mark.parametrize("name", ["run", "dev", "lock"])
def test_a_lock_names_no_address(name: str) -> None:
    assert [line for line in (LOCKS / f"{name}.txt").read_text("utf-8").splitlines() if ADDRESS.search(line)] == []


@pytest.mark.parametrize(
    "line",
    ["--index-url mirror", "-i mirror", "--find-links wheels", "a @ https://example.org/a.whl", "a @ file:///a.whl"],
)
def test_an_address_would_be_found(line: str) -> None:
    assert ADDRESS.search(line)


@pytest.mark.parametrize("line", ["attrs>=25", "attrs==26.1.0", f"attrs==26.1.0 --hash=md5:{'0' * 32}", "-e ."])
def test_a_pin_without_version_or_hash_would_be_found(line: str) -> None:
    with pytest.raises(ValueError, match="no exact version"):
        pins(line + "\n")


@pytest.mark.parametrize(("group", "name"), [("run", "run"), ("run", "dev"), ("dev", "dev"), ("lock", "lock")])
def test_each_requirement_of_the_project_is_pinned_within_its_range(group: str, name: str) -> None:
    pinned = lock(name)
    for requirement in asked(group):
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), str(requirement)


def test_tests_run_with_the_versions_that_users_install() -> None:
    assert lock("run").items() <= lock("dev").items()
