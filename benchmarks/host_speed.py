"""How long plugins take to answer when each has a process of its own, beside the same plugins in the host's process.

Run: ``python benchmarks/host_speed.py [--plugins 4] [--runs 20]``. Plugins are made that import what real ones do,
declare 150 ids each and report two findings on a manifest. Measured is a fresh interpreter from its first line to the
end of its plugins: nothing but the interpreter (``start``), finding plugins and asking what they are (``open``), and
asking besides which manifests they own and for their findings (``lint``). The best of ``--runs`` is printed. Say on
which machine and how idle it was when quoting a figure.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLUGIN = """
from moeplan.hooks.specs import hookimpl
from moeplan.facts import judge, launches
from moeplan.model.plugin import FactSource, FindingRule, PluginFinding, Profile, RuntimeInfo

MOEPLAN_API = 1
SOURCES = (FactSource("a document", "section 1"),)


@hookimpl
def moeplan_runtime():
    return RuntimeInfo(
        engine="vllm", vendor="made", plugin={name!r}, version="1.0",
        profiles=(Profile("one", "title", "measured", "it ran", SOURCES),),
        rules=tuple(FindingRule(f"M-{{number}}", "made") for number in range(150)),
    )


@hookimpl
def moeplan_owns_manifest(manifest):
    return manifest["kind"] == "Job"


@hookimpl
def moeplan_lint(request):
    return tuple(
        PluginFinding(
            id=f"M-{{number}}", severity="error", path="$.kind", file="job.yaml", line=1, message="a message",
            consequence="a consequence", silent="no", remedy="a remedy", sources=SOURCES,
        )
        for number in range(2)
    )
"""

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
deadline_ms = None if sys.argv[2] == "here" else 10_000
if sys.argv[3] != "start":
    from moeplan.hooks.host import open_host
    hooks = ["moeplan_lint"] if sys.argv[3] == "lint" else []
    names = sys.argv[4].split(",")
    with open_host(names, deadline_ms, expects=hooks) as host:
        assert len(host.plugins) == len(names), host.failures
        if sys.argv[3] == "lint":
            from moeplan.model.rendering import LintRequest, ManifestSource
            assert len(host.owners([{"kind": "Job"}] * 10).answers) == len(names)
            request = LintRequest((ManifestSource("job.yaml", "kind: Job", (0,)),))
            answers = host.lint({plugin.name: request for plugin in host.plugins}, {}).answers
            assert [len(answer.value) for answer in answers] == [2] * len(names)
"""


def add_plugins(directory: Path, count: int) -> list[str]:
    """Install ``count`` plugins into a directory and return their names."""
    names = [f"made-{number}" for number in range(count)]
    for name in names:
        module = name.replace("-", "_")
        (directory / f"{module}.py").write_text(PLUGIN.format(name=name), "utf-8")
        metadata = directory / f"{module}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
        (metadata / "entry_points.txt").write_text(f"[moeplan]\n{name} = {module}\n", "utf-8")
    return names


def best_ms(command: list[str], runs: int) -> float:
    """Return the least time a command took, in milliseconds."""
    best = float("inf")
    for _ in range(runs + 1):  # the first one compiles
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - began)
    return best * 1000


def main() -> None:
    """Print the best times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugins", type=int, default=4)
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        names = ",".join(add_plugins(Path(made), args.plugins))
        for what in ("start", "open", "lint"):
            for where in ("here", "apart"):
                took = best_ms([sys.executable, "-c", PROGRAM, made, where, what, names], args.runs)
                print(f"{what:6} {where:6} {took:6.0f} ms")


if __name__ == "__main__":
    main()
