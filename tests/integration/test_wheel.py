"""The built wheel: what it holds, and that it works without the source tree.

``.ci/run`` names the wheel it built (``MOEPLAN_WHEEL``) and an environment that holds it and its locked runtime
requirements alone (``MOEPLAN_WHEEL_PYTHON``). Without them a wheel is built here and imported as unpacked.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[2]
Run = Callable[..., "CompletedProcess[str]"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("MOEPLAN_WHEEL")
    if named:
        return Path(named)
    into = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(into), str(REPOSITORY)]
    subprocess.run(build, check=True, capture_output=True, text=True)
    (built,) = into.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def run_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs Python away from the repository, with moeplan as the wheel brings it."""
    away = tmp_path_factory.mktemp("away")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))}
    python = os.environ.get("MOEPLAN_WHEEL_PYTHON")
    if not python:
        python = sys.executable
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(away / "unpacked")
        environment["PYTHONPATH"] = str(away / "unpacked")

    def run(*arguments: str) -> CompletedProcess[str]:
        return subprocess.run(
            [python, *arguments], cwd=away, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_it_holds_the_package_its_data_and_the_schemas_and_nothing_else(wheel: Path) -> None:
    package = [
        path
        for pattern in ("*.py", "py.typed", "catalogue/data/*.json")
        for path in (REPOSITORY / "moeplan").rglob(pattern)
    ]
    package += [path for path in (REPOSITORY / "moeplan" / "plugin_template").rglob("*") if path.is_file()]
    expected = {path.relative_to(REPOSITORY).as_posix(): path.read_bytes() for path in package}
    expected |= {f"moeplan/schemas/{path.name}": path.read_bytes() for path in (REPOSITORY / "schemas").iterdir()}
    assert {"moeplan/py.typed", "moeplan/catalogue/data/registry-1.1.0.json"} < set(expected)
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert sorted(held) == sorted(expected)
    assert [name for name in held if held[name] != expected[name]] == []


def test_its_metadata_names_versions_licence_and_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = {name.partition(".dist-info/")[2]: name for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(info["METADATA"]).decode()
        commands = archive.read(info["entry_points.txt"]).decode()
    assert "Requires-Python: >=3.11\n" in metadata
    assert "License-Expression: Apache-2.0\n" in metadata
    assert "licenses/LICENSE" in info
    assert "moeplan = moeplan.cli.main:run" in commands
    listed = [Requirement(line.split(": ")[1]) for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    required = {one.name for one in listed if one.marker is None}
    assert {"attrs", "cattrs", "pyarrow"} < required
    assert not required & {"pytest", "scipy", "hypothesis"}
    assert {(one.name, str(one.marker)) for one in listed if one.marker is not None} == {
        ("pytest", 'extra == "testing"'),
        ("pytest", 'extra == "authoring"'),
        ("copier", 'extra == "authoring"'),
        ("tokenizers", 'extra == "collect"'),
    }


def test_it_is_imported_from_the_wheel_and_not_from_the_source(run_python: Run) -> None:
    found = run_python("-c", "import moeplan; print(moeplan.__file__)")
    assert found.returncode == 0, found.stderr
    assert not Path(found.stdout.strip()).is_relative_to(REPOSITORY / "moeplan")


def test_its_schemas_are_reached_and_are_the_published_ones(run_python: Run) -> None:
    program = (
        "import hashlib, json\n"
        "from importlib import resources\n"
        "from moeplan.wire.documents import DOCUMENTS\n"
        "from moeplan.wire.schemas import check_schema, head_of, load_schema, schema_name\n"
        "heads = [head_of(document) for document in DOCUMENTS]\n"
        "packaged = resources.files('moeplan').joinpath('schemas')\n"
        "digest = lambda name: hashlib.sha256(packaged.joinpath(name).read_bytes()).hexdigest()\n"
        "assert all(load_schema(*head)['title'] == head[0] for head in heads)\n"
        "print(json.dumps({schema_name(*head): digest(schema_name(*head)) for head in heads}))\n"
    )
    shown = run_python("-c", program)
    assert shown.returncode == 0, shown.stderr
    published = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (REPOSITORY / "schemas").iterdir()
    }
    reached = json.loads(shown.stdout)
    assert reached.items() <= published.items()
    assert len(reached) >= 8


def test_the_command_plans_from_the_registry_it_brings(run_python: Run) -> None:
    """The numbers are those of the seed: 13 accelerators, 16 after rounding to nodes of 8."""
    shown = run_python("-m", "moeplan.cli.main", "plan", "kimi-k3", "h200", "--devices", "8", "--json")
    assert shown.returncode == 0, shown.stderr
    plan = json.loads(shown.stdout)
    assert plan["kind"] == "deployment_validation_plan"
    assert plan["scenarioKey"] == "kimi-k3--h200--vllm--8x8--r1300--i4096--o1024--c1--t1000--p50--single"
    assert plan["readiness"]["status"] == "blocked"
    known = " ".join(plan["dimensions"]["load"]["known"])
    assert "13 accelerator" in known
    assert "16 accelerator" in known


def test_an_unknown_model_is_an_input_error_and_no_traceback(run_python: Run) -> None:
    shown = run_python("-m", "moeplan.cli.main", "plan", "kimi-k33", "h200", "--json")
    assert shown.returncode == 2
    assert json.loads(shown.stdout)["error"]["code"]
    assert "Traceback" not in shown.stderr


@pytest.mark.skipif("MOEPLAN_WHEEL_PYTHON" not in os.environ, reason="only .ci/run installs the wheel")
def test_the_console_script_stands_beside_its_python(wheel: Path) -> None:
    script = Path(os.environ["MOEPLAN_WHEEL_PYTHON"]).with_name("moeplan")
    shown = subprocess.run([script, "--version"], capture_output=True, text=True, check=True, cwd=wheel.parent)
    assert shown.stdout == f"moeplan {wheel.name.split('-')[1]}\n"
