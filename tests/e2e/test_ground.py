"""What the machine says: registry, site, packages, arguments."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from e2e.ground import list_packages, memory_bytes, resolved_arguments, write_registry, write_site
from e2e.processes import StepFailedError
from moeplan.cli.main import main

GOLDEN = Path(__file__).resolve().parents[2] / "plugins" / "moeplan-vllm-cpu" / "tests" / "golden" / "bare" / "serve.sh"


def test_the_memory_is_the_kernels() -> None:
    told = Path("/proc/meminfo").read_text("utf-8").split("MemTotal:")[1].split()[0]
    assert memory_bytes() == int(told) * 1024


def test_registry_and_site_are_valid_and_name_one_host(tmp_path: Path) -> None:
    write_registry(tmp_path / "registry.json")
    write_site(tmp_path / "site.yaml", tmp_path / "models", 8124)
    assert main(["registry", "validate", str(tmp_path / "registry.json")]) == 0
    assert main(["site", "validate", str(tmp_path / "site.yaml")]) == 0
    host = json.loads((tmp_path / "registry.json").read_bytes())["hardware"][0]
    assert host["id"] == json.loads((tmp_path / "site.yaml").read_bytes())["hardware"]
    assert host["memoryGigabytes"]["value"] == memory_bytes() // 10**9


def test_the_arguments_are_the_rendered_ones_without_the_directory() -> None:
    assert resolved_arguments(GOLDEN, Path("/home/me/my models")) == [
        "serve", "/models/tiny-moe",
        "--served-model-name", "tiny-moe",
        "--port", "8000",
        "--dtype", "bfloat16",
        "--max-model-len", "256",
        "--max-num-seqs", "4",
        "--tensor-parallel-size", "1",
    ]  # fmt: skip


def test_a_script_that_starts_another_program_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("#!/bin/sh\nexec sleep 60\n", "utf-8")
    with pytest.raises(StepFailedError, match="starts no engine"):
        resolved_arguments(script, tmp_path)


def test_an_environment_without_vllm_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    with pytest.raises(StepFailedError, match="lists no vllm"):
        list_packages(tmp_path, tmp_path / "packages.txt")
    assert not (tmp_path / "packages.txt").exists()
