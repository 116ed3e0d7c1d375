"""What every test shares: Hypothesis profiles, blocked sockets, and the samples beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parents[1]
OFFLINE = tuple(REPOSITORY / "tests" / room for room in ("unit", "property", "conformance", "golden", "hooks"))
"""Rooms whose tests open no socket; a test there that does fails."""

# "ci" draws the same examples each run and writes no example database; "dev" searches on, run after run.
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the offline rooms, so that pytest-socket refuses each socket they open."""
    for item in items:
        if any(item.path.is_relative_to(room) for room in OFFLINE):
            item.add_marker(pytest.mark.disable_socket)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Return the directory of samples that lies beside the repository, or skip the test where it does not."""
    path = REPOSITORY.parent / "shared"
    if not path.is_dir():
        pytest.skip(f"no shared samples: {path.parent.name}/shared lies not beside the repository")
    return path
