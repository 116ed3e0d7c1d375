"""The house's rules that a machine can check: imports point down, start-up is light, everything is documented."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "moeplan"
MODULES = sorted(PACKAGE.rglob("*.py"))
PLUGIN_MODULES = sorted((ROOT / "plugins").glob("*/moeplan_*/**/*.py"))
NEUTRAL = {"moeplan_vllm", "moeplan_infera"}
"""Libraries that several runtimes share; they know no runtime, and not each other."""
PLUGINS = {path.relative_to(ROOT / "plugins").parts[1] for path in PLUGIN_MODULES} - NEUTRAL
WITHOUT_MOEPLAN = {"moeplan_vllm_probe"}
"""Runs inside another project's engine, where moeplan is not installed."""
OPEN_ROOMS = {"hooks", "manifests", "facts", "model", "units", "errors"}
"""What a plugin may import of moeplan."""

LEVELS = (
    {"errors", "units", "digest", "version"},
    {"model"},
    {"wire"},
    {"catalogue"},
    {"planning", "evaluation", "hooks", "manifests", "signing"},
    {"checkpoint", "importers", "collectors", "attest", "bundle"}
    | {"comparison", "facts", "findings", "diagnosis", "site", "rendering"},
    {"auditing"},
    {"workflows"},
    {"report", "server", "testing"},
    {"cli"},
)
"""Rooms from the ground up; siblings of one level do not know each other."""
LEVEL = {room: number for number, rooms in enumerate(LEVELS) for room in rooms}
GROUND = {"errors": set(), "units": {"errors"}, "digest": set[str](), "version": set[str]()}
"""The ground floor is modules, not rooms: what each may import of the others."""
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc", "base", "core"}
HEAVY = {
    "sigstore",
    "pyarrow",
    "jsonschema",
    "requests",
    "pluggy",
    "numpy",
    "msgspec",
    "cryptography",
    "yaml",
    "scipy",
    "re2",
    "tokenizers",
}


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of every import, wherever it stands: lazy and TYPE_CHECKING ones too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, "." * node.level + (node.module or "")
            elif node.module == "moeplan":
                yield from ((node.lineno, f"moeplan.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module or ""


def faults(room: str, source: str) -> list[str]:
    """Return what the imports of a module in ``room`` break."""
    found = []
    for line, name in _imports(source):
        if name.startswith("."):
            found.append(f"{line}: relative import {name}")
        if name.split(".")[0] != "moeplan" or room == "__init__":
            continue
        target = name.split(".")[1] if "." in name else ""
        if target == room:
            continue
        if target not in LEVEL:
            found.append(f"{line}: imports {name}, which is no room")
        elif LEVEL[target] > LEVEL[room]:
            found.append(f"{line}: imports upwards: {name}")
        elif LEVEL[target] == LEVEL[room] and target not in GROUND.get(room, set()):
            found.append(f"{line}: imports its sibling: {name}")
    return found


def plugin_faults(package: str, source: str) -> list[str]:
    """Return what the imports of a module of the plugin or library ``package`` break."""
    found = []
    for line, name in _imports(source):
        top, _, rest = name.partition(".")
        if top == "":
            found.append(f"{line}: relative import {name}")
        elif top == "moeplan" and (package in WITHOUT_MOEPLAN or rest.split(".")[0] not in OPEN_ROOMS):
            found.append(f"{line}: imports {name}, which is not open to plugins")
        elif top.startswith("moeplan_") and top != package and (top not in NEUTRAL or package in NEUTRAL):
            found.append(f"{line}: imports another plugin: {name}")
    return found


def test_every_room_has_its_level() -> None:
    rooms = {_room(path) for path in MODULES} - {"__init__"}
    assert rooms <= set(LEVEL), rooms - set(LEVEL)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    assert faults(_room(path), path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("room", "source", "word"),
    [
        ("model", "from moeplan.wire.files import read_file", "upwards"),
        ("model", "def f():\n    import moeplan.wire", "upwards"),
        ("model", "if TYPE_CHECKING:\n    from moeplan import wire", "upwards"),
        ("bundle", "from moeplan.attest import trust", "sibling"),
        ("planning", "import moeplan.evaluation.evaluate", "sibling"),
        ("errors", "from moeplan.units import ceil_div", "sibling"),
        ("bundle", "from . import source", "relative"),
        ("cli", "import moeplan.tools", "no room"),
        ("wire", "import moeplan", "no room"),
    ],
)
def test_the_check_sees_what_it_is_for(room: str, source: str, word: str) -> None:
    found = faults(room, source)
    assert len(found) == 1
    assert word in found[0]


def test_the_check_lets_through_what_is_right() -> None:
    source = "import json\nfrom moeplan.model.plan import Plan\nfrom moeplan.bundle.source import open_source\n"
    assert faults("bundle", source) == []
    assert faults("units", "from moeplan.errors import Issue") == []


def _plugin_path(path: Path) -> str:
    return path.relative_to(ROOT / "plugins").as_posix()


@pytest.mark.parametrize("path", PLUGIN_MODULES, ids=_plugin_path)
def test_plugins_import_what_is_open_to_them(path: Path) -> None:
    assert plugin_faults(path.relative_to(ROOT / "plugins").parts[1], path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("package", "source", "word"),
    [
        ("moeplan_vllm_cuda", "from moeplan.wire.files import read_file", "not open"),
        ("moeplan_vllm_cuda", "def f():\n    from moeplan import cli", "not open"),
        ("moeplan_vllm_cuda", "from moeplan.testing import RuntimePluginSuite", "not open"),
        ("moeplan_vllm_cuda", "import moeplan", "not open"),
        ("moeplan_vllm_cuda", "from moeplan_vllm_rocm_aiter.facts import all_facts", "another plugin"),
        ("moeplan_vllm", "import moeplan_vllm_cuda.rules", "another plugin"),
        ("moeplan_vllm", "from moeplan_infera.storage import storage", "another plugin"),
        ("moeplan_infera", "from . import storage", "relative"),
        ("moeplan_vllm_probe", "from moeplan.errors import escape", "not open"),
    ],
)
def test_the_check_of_plugins_sees_what_it_is_for(package: str, source: str, word: str) -> None:
    found = plugin_faults(package, source)
    assert len(found) == 1
    assert word in found[0]


def test_the_check_of_plugins_lets_through_what_is_right() -> None:
    source = (
        "import json\nfrom moeplan.model.plan import Plan\nfrom moeplan_vllm.memory import f\nimport moeplan_x.rules\n"
    )
    assert plugin_faults("moeplan_x", source) == []


def test_the_plugins_are_found() -> None:
    assert {"moeplan_vllm_cuda", "moeplan_vllm_rocm_aiter"} <= PLUGINS


@pytest.mark.parametrize("module", ["moeplan", "moeplan.cli.main", *(f"{name}.plugin" for name in sorted(PLUGINS))])
def test_start_up_loads_nothing_heavy(module: str) -> None:
    program = f"import json, sys, {module}; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = set(json.loads(shown))
    assert ("moeplan" in loaded) is (module.split(".")[0] not in WITHOUT_MOEPLAN)
    light = {"pluggy"} if module.endswith(".plugin") else set()  # its markers say what a hook is
    assert not loaded & (HEAVY - light)


@pytest.mark.parametrize("path", MODULES + PLUGIN_MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_everything_public_is_documented(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree), "the module has no docstring"
    exported = _exported(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name in exported:
            assert ast.get_docstring(node), f"{node.name} has no docstring"
        if isinstance(node, ast.ClassDef) and node.name in exported:
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and not inner.name.startswith("_"):
                    assert ast.get_docstring(inner), f"{node.name}.{inner.name} has no docstring"


def _exported(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            names = ast.literal_eval(node.value)
            defined = {name for item in tree.body for name in _defined(item)}
            if "__getattr__" not in defined:  # else names are served lazily
                assert set(names) <= defined, set(names) - defined
            assert len(names) == len(set(names))
            return set(names)
    return {name for item in tree.body for name in _defined(item) if not name.startswith("_")}


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name) for alias in node.names)
    elif isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.If):
        for inner in [*node.body, *node.orelse]:
            yield from _defined(inner)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_module_takes_of_another_is_exported(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("moeplan."):
            continue
        source = ROOT.joinpath(*(node.module or "").split(".")).with_suffix(".py")
        if source.is_file():
            assert {alias.name for alias in node.names} <= _exported(ast.parse(source.read_text("utf-8")))


def test_names_say_what_a_module_holds() -> None:
    paths = [path.relative_to(ROOT) for path in MODULES + PLUGIN_MODULES]
    parts = {part.removesuffix(".py").strip("_") for path in paths for part in path.parts}
    assert not parts & FORBIDDEN_NAMES
