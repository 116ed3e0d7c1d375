"""What the machine itself says: its memory in a registry, a site, the engine's packages and arguments."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

from e2e.checkpoint import NAME
from e2e.processes import StepFailedError

__all__ = ["HARDWARE", "NODE", "list_packages", "memory_bytes", "resolved_arguments", "write_registry", "write_site"]

HARDWARE = "cpu-host"
NODE = "node-1"
"""Pseudonym of the one node."""
_DEMO_REGISTRY = Path(__file__).resolve().parents[1] / "demo" / "registry.json"
_LIST = """
import platform
from importlib.metadata import distributions
rows = {(found.metadata["Name"].lower(), found.version) for found in distributions()}
print("\\n".join(sorted(f"{name}=={version}" for name, version in {*rows, ("python", platform.python_version())})))
"""


def memory_bytes() -> int:
    """Return the machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def write_registry(path: Path) -> None:
    """Write the demonstration's registry with this machine's memory, rounded down to whole decimal gigabytes."""
    registry = json.loads(_DEMO_REGISTRY.read_text("utf-8"))
    registry["registryVersion"] = "e2e-1"
    host = next(entry for entry in registry["hardware"] if entry["id"] == HARDWARE)
    host["name"] = "CPU host of the end-to-end run"
    source = next(entry for entry in registry["sources"] if entry["id"] == "engine-log")
    source.update(id="host-memory", publisher="moeplan end-to-end run: the kernel of the host")
    provenance = {"source": "host-memory", "locator": "physical pages, in whole decimal GB"}
    host["memoryGigabytes"] = {"status": "known", "value": memory_bytes() // 10**9, "provenance": [provenance]}
    path.write_text(json.dumps(registry, indent=1) + "\n", "utf-8")


def write_site(path: Path, models: Path, port: int) -> None:
    """Write the site: one node, its directory of models, the port."""
    site = {
        "kind": "site",
        "schemaVersion": "1.0.0",
        "runtime": "vllm-cpu",
        "profile": "single",
        "hardware": HARDWARE,
        "acceleratorsPerNode": 1,
        "servedModelName": NAME,
        "nodes": [{"name": NODE, "modelDirectory": str(models), "hostMemoryBytes": memory_bytes()}],
        "modelNames": {"target": NAME},
        "ports": {"engine": port},
    }
    path.write_text(json.dumps(site, indent=1) + "\n", "utf-8")


def list_packages(environment: Path, path: Path) -> None:
    """Write the distributions of the engine's environment, one a line, its Python among them.

    Raises:
        StepFailedError: its Python cannot list them.
    """
    python = environment / "bin" / "python"
    done = subprocess.run([python, "-I", "-c", _LIST], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0 or "vllm==" not in done.stdout:
        raise StepFailedError(f"{python} lists no vllm\n{done.stderr[-2000:]}")
    path.write_text(done.stdout, "utf-8")


def resolved_arguments(script: Path, models: Path) -> list[str]:
    """Return the engine's arguments out of the rendered script, the directory of models as ``/models``.

    Raises:
        StepFailedError: the script does not end in one ``exec vllm``.
    """
    words = shlex.split(script.read_text("utf-8").rpartition("exec vllm ")[2].replace("\\\n", " "))
    if words[:1] != ["serve"] or "--port" not in words:
        raise StepFailedError(f"{script} starts no engine by 'exec vllm serve'")
    return [f"/models/{NAME}" if word == f"{models}/{NAME}" else word for word in words]
