"""A directory of plugins on the path; what is imported from it in this process is forgotten after the test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

from moeplan.catalogue.registries import load_registry
from moeplan.model.plan import Plan, Scenario
from moeplan.planning.builder import plan as make_plan


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a directory to install plugins into; plugins of the environment are not seen."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(metadata, "distributions", partial(metadata.distributions, path=[str(tmp_path)]))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("made_")]:
        del sys.modules[name]


@pytest.fixture(scope="session")
def plan() -> Plan:
    """Return a plan."""
    return make_plan(load_registry(), Scenario("kimi-k3", "h200", 8))
