"""Makes real plugins: a module and the metadata of its distribution in a directory on the path."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

HEAD = """
from moeplan.hooks.specs import hookimpl
from moeplan.model.plugin import *

MOEPLAN_API = 1
SOURCE = (FactSource("a document", "section 1"),)
KEYS = ("id", "plugin", "severity", "path", "message", "consequence", "silent", "remedy", "sources", "valid_for")


def finding(id="T-1", **more):
    return PluginFinding(
        id=id, severity="error", path="$.target", message="m", consequence="c", silent="no", remedy="r",
        sources=SOURCE, **more,
    )


def offer(id="extra"):
    return OfferedCriterion(
        gate="runtime_load", id=id, metric="restarts", aggregation="sum", comparator="le", limit=0, unit="count",
        evidence_types=("runtime_load",), min_binding="declared", clause="extra",
    )


def signature(**more):
    return LogSignature(
        **{"id": "T-1", "severity": "error", "literals": ("boom",), "expectation": "must_be_zero", "cause": "c",
           "remedy": "r", "sources": SOURCE, **more}
    )
"""

INFO = """
@hookimpl
def moeplan_runtime():
    return RuntimeInfo(
        engine={engine!r}, vendor={vendor!r}, plugin={plugin!r}, version={version!r},
        profiles=tuple(Profile(one, "title", "measured", "it ran", SOURCE) for one in {profiles!r}),
        rules=tuple(FindingRule(*rule) for rule in {rules!r}),
    )
"""


def add_plugin(
    directory: Path,
    name: str,
    body: str = "",
    *,
    version: str = "1.0",
    distribution: str | None = None,
    engine: str = "vllm",
    vendor: str = "test",
    profiles: tuple[str, ...] = ("one",),
    rules: tuple[tuple[str, str], ...] = (("T-1", "shared"),),
    claims: str | None = None,
    info: str = INFO,
    head: str = HEAD,
) -> None:
    """Install a plugin into ``directory``; ``claims`` is the name it gives itself, where that is another."""
    distribution = distribution or f"{name}-dist"
    module = "made_" + distribution.replace("-", "_").replace(".", "_")
    about = info.format(
        engine=engine, vendor=vendor, plugin=claims or name, version=version, profiles=profiles, rules=rules
    )
    (directory / f"{module}.py").write_text(head + about + dedent(body), "utf-8")
    metadata = directory / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", "utf-8")
    (metadata / "entry_points.txt").write_text(f"[moeplan]\n{name} = {module}\n", "utf-8")


def hook(signature: str, *lines: str) -> str:
    """Return the source of a hook."""
    return f"\n@hookimpl\ndef {signature}:\n" + indent("\n".join(lines), "    ") + "\n"
