"""requirements/install: what it says and leaves alone where it cannot make an environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

INSTALL = Path(__file__).resolve().parents[2] / "requirements" / "install"


def install(venv: Path, python: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(INSTALL), str(venv), "requirements/run.txt", python]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_an_old_python_is_named_with_the_next_step(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\ncase "$1" in -c) exit 1;; esac\necho Python 3.10.4\n')
    old.chmod(0o755)
    done = install(tmp_path / "venv", str(old))
    assert done.returncode == 2
    assert "is Python 3.10.4; moeplan needs Python 3.11 or newer: make PYTHON=" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_a_missing_python_is_named_with_the_next_step(tmp_path: Path) -> None:
    done = install(tmp_path / "venv", "no-such-python")
    assert done.returncode == 2
    assert "no command 'no-such-python': install Python 3.11 or newer" in done.stderr


def test_a_directory_that_is_no_environment_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "letters.txt").write_text("keep")
    done = install(tmp_path / "venv", sys.executable)
    assert done.returncode == 2
    assert "exists and is no virtual environment: move it away" in done.stderr
    assert (tmp_path / "venv" / "letters.txt").read_text() == "keep"
