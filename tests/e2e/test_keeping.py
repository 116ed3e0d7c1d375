"""Reference evidence is replaced as a whole, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.keeping import keep
from e2e.processes import StepFailedError


def made(directory: Path, text: str) -> Path:
    (directory / "bundle" / "evidence").mkdir(parents=True)
    (directory / "bundle" / "evidence" / f"{text}.json").write_text(text, "utf-8")
    for name in ("policy.json", "verdict.json", "engine.log"):
        (directory / name).write_text(text, "utf-8")
    return directory


def files(directory: Path) -> dict[str, str]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_text("utf-8") for path in found}


def test_the_new_takes_the_place_of_the_old(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    keep(made(tmp_path / "first", "first"), kept)
    keep(made(tmp_path / "second", "second"), kept)
    assert files(kept) == {"bundle/evidence/second.json": "second", "policy.json": "second", "verdict.json": "second"}


def test_a_directory_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "letters.txt").write_text("keep", "utf-8")
    with pytest.raises(StepFailedError, match="holds letters"):
        keep(made(tmp_path / "run", "new"), tmp_path / "kept")
    assert files(tmp_path / "kept") == {"letters.txt": "keep"}
