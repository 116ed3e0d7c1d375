"""The tiny checkpoint that is served: four layers of sixteen experts, random weights, the same bytes everywhere."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from e2e.processes import StepFailedError

__all__ = ["NAME", "ROOT_DIGEST", "make_checkpoint", "root_digest"]

NAME = "tiny-moe"
ROOT_DIGEST = "sha256:775fbd85ccb49e572123915beeeb0e3ebe555b51cfa38c59f5461c63f5de2661"
"""Root over the names, sizes and digests of its files, as ``docs/formats.md`` defines it."""
_SOURCE = Path(__file__).resolve().parents[1] / "demo" / NAME


def make_checkpoint(models: Path) -> Path:
    """Write the checkpoint below a directory of models, apart from the repository, and return where it lies.

    Raises:
        StepFailedError: the files are not the ones that were published.
    """
    directory = models / NAME
    directory.mkdir(parents=True)
    for path in sorted(_SOURCE.iterdir()):
        shutil.copyfile(path, directory / path.name)
    found = root_digest(directory)
    if found != ROOT_DIGEST:
        raise StepFailedError(f"the checkpoint's root digest is {found}, and {ROOT_DIGEST} was expected")
    return directory


def root_digest(directory: Path) -> str:
    """Return the root digest of a flat directory, computed apart from moeplan's own code, which it checks."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.stat().st_size}  {path.name}\n"
        for path in sorted(directory.iterdir(), key=lambda path: path.name.encode())
    ]
    return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()
