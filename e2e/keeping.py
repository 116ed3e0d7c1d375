"""Keeps the bundle of a run as reference evidence, with the policy it was judged under and the verdict."""

from __future__ import annotations

import shutil
from pathlib import Path

from e2e.processes import StepFailedError

__all__ = ["keep"]

_KEPT = ("bundle", "policy.json", "verdict.json")


def keep(work: Path, destination: Path) -> None:
    """Put a run's bundle, policy and verdict in the place of what ``destination`` holds.

    Raises:
        StepFailedError: ``destination`` holds something else.
    """
    if destination.exists():
        foreign = sorted(path.name for path in destination.iterdir() if path.name not in _KEPT)
        if foreign:
            raise StepFailedError(
                f"{destination} holds {', '.join(foreign)}, so it is no reference evidence; nothing kept"
            )
        shutil.rmtree(destination)
    destination.mkdir(parents=True)
    shutil.copytree(work / "bundle", destination / "bundle")
    for name in _KEPT[1:]:
        shutil.copyfile(work / name, destination / name)
