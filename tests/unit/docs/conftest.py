"""A place to run the pages' examples in: the repository's data by link, and nothing else."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from tests.unit.docs.pages import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a directory that looks like the repository's root and may be written to."""
    for name in ("demo", "evidence", "schemas"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/data").symlink_to(ROOT / "tests/data")
    (tmp_path / "work").mkdir()
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin/moeplan"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m moeplan.cli.main "$@"\n', "utf-8")
    script.chmod(0o755)
    return tmp_path
