"""The command that waits for Jobs, run by a shell with a kubectl that says what one version of Kubernetes says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from moeplan.manifests.probes import until_ended


def waits(directory: Path, *conditions: str) -> str | None:
    """Return what kubectl was asked, where the command ends when a Job's conditions are these, one answer a look."""
    answers = directory / "answers"
    answers.write_text("".join(f"{one}\n" for one in conditions))
    kubectl = directory / "kubectl"
    kubectl.write_text(
        f'#!/bin/sh\necho "$*" >> {directory}/asked\nhead -n 1 {answers}\n'
        f"[ $(wc -l < {answers}) -gt 1 ] && sed -i 1d {answers}\nexit 0\n"
    )
    kubectl.chmod(0o755)
    command = until_ended("serving", "job/a job/b").replace("sleep 5", "sleep 0.05")
    path = f"{directory}:{os.environ['PATH']}"
    try:
        subprocess.run(["sh", "-c", command], env=os.environ | {"PATH": path}, timeout=2, check=True)
    except subprocess.TimeoutExpired:
        return None
    return (directory / "asked").read_text()


@pytest.mark.parametrize("ended", ["Complete", "SuccessCriteriaMet Complete", "Failed", "FailureTarget Failed"])
def test_a_job_that_failed_has_ended_like_one_that_is_complete(tmp_path: Path, ended: str) -> None:
    asked = waits(tmp_path, "", "", ended)
    assert asked is not None
    assert [line.split()[3] for line in asked.splitlines()] == ["job/a", "job/a", "job/a", "job/b"]
    assert asked.splitlines()[0] == "-n serving get job/a -o jsonpath={.status.conditions[*].type}"


@pytest.mark.parametrize("running", ["", "SuccessCriteriaMet", "FailureTarget", "Suspended"])
def test_it_waits_for_one_that_runs(tmp_path: Path, running: str) -> None:
    assert waits(tmp_path, running) is None
