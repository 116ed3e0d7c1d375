"""What comes out, byte for byte, and what is to be said of rendered files before anybody looks at them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moeplan.errors import MoeplanError
from moeplan.testing.bench import Bench
from moeplan.testing.cases import Golden, LintGolden, RenderGolden, load_site_values
from moeplan.wire.converter import unstructure

__all__ = ["golden_files", "rendered_faults", "write_files"]


def golden_files(bench: Bench, golden: Golden) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return what comes out and what stands there, each by path."""
    if isinstance(golden, LintGolden):
        wanted = {golden.expected: _pretty([unstructure(finding) for finding in bench.linted(golden)])}
        path = bench.directory / golden.expected
        return wanted, {golden.expected: path.read_bytes()} if path.is_file() else {}
    rendering = bench.rendering(golden)
    wanted = {f"{golden.directory}/{file.name}": file.text.encode() for file in rendering.files}
    if rendering.guide:
        wanted[f"{golden.directory}/guide.json"] = _pretty([unstructure(step) for step in rendering.guide])
    there = (bench.directory / golden.directory).glob("*")
    return wanted, {f"{golden.directory}/{path.name}": path.read_bytes() for path in there if path.is_file()}


def write_files(directory: Path, wanted: Mapping[str, bytes], stands: Mapping[str, bytes]) -> None:
    """Let exactly the wanted files stand where others stood."""
    for name in stands.keys() - wanted.keys():
        (directory / name).unlink()
    for name, data in wanted.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def rendered_faults(bench: Bench, golden: RenderGolden) -> list[str]:
    """Return what is wrong with rendered files: what the core refuses, own lint's findings, files that are nobody's."""
    from moeplan.rendering.scrutiny import scrutinise
    from moeplan.workflows.lint import lint_sources, read_sources

    rendering = bench.rendering(golden)
    site = load_site_values(bench.directory, golden.site)
    try:
        scrutinise(rendering, site, bench.name)
    except MoeplanError as error:
        return [str(issue) for issue in error.issues]
    sources = read_sources({file.name: file.text.encode() for file in rendering.files if file.form != "text"})
    listed = lint_sources(bench.host, sources, site, runtime=bench.name)
    found = [f"{f.file}:{f.line}: {f.id}: {f.message}" for f in listed.findings if f.severity != "info"]
    if "moeplan_owns_manifest" not in bench.installed.hooks:
        return found
    strange = lint_sources(bench.host, sources, site).not_judged
    return [*found, *(f"{name}: the plugin does not know it as its own" for name, why in strange if "plugin" in why)]


def _pretty(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
