"""``moeplan collect metrics``: poll the engine's metrics, its devices and its node from before its start to its end."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.endpoint_options import require_range, seconds
from moeplan.cli.observation_options import add_observation, observation_context, show_collected
from moeplan.cli.telemetry_options import node_and_key

if TYPE_CHECKING:
    from pathlib import Path

    from moeplan.workflows.collect_metrics import MetricsRun
    from moeplan.workflows.metrics_reader import Watched

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan collect metrics --endpoint http://localhost:8000 --node node-a --serving-node node-a --plan plan.json "
    "--checkpoint checkpoint.json --runtime-packages packages.txt -o memory"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare sources, end and output."""
    sources = parser.add_argument_group("what is polled")
    sources.add_argument(
        "--endpoint",
        action="append",
        required=True,
        metavar="[ROLE=]URL",
        help="an engine's or a DCGM exporter's page of metrics; once for each, with the role that it serves",
    )
    sources.add_argument("--api-key-env", metavar="VAR", help="environment variable that holds the API key")
    sources.add_argument("--ca-file", metavar="FILE", help="certificates to check https endpoints with")
    sources.add_argument("--node", metavar="NAME", help="pseudonym of this node, as for --serving-node")
    sources.add_argument(
        "--pseudonym-key",
        metavar="FILE",
        help="key of the pseudonyms of node, devices and processes; made if missing (default: of this run alone)",
    )
    tool = sources.add_mutually_exclusive_group()
    tool.add_argument(
        "--gpu-command",
        metavar="TEXT",
        help="command that prints what nvidia-smi or amd-smi prints, such as a kubectl exec of it (default: the one "
        "in PATH)",
    )
    tool.add_argument("--cpu-engine", action="store_true", help="the engine runs on CPUs: its processes' memory counts")
    process = sources.add_mutually_exclusive_group()
    process.add_argument("--pid", type=int, metavar="PID", help="the engine's process (default: vLLM's server, found)")
    process.add_argument("--process-name", metavar="TEXT", help="a text of the engine's command line")
    sources.add_argument("--probe-dir", metavar="DIR", help="what MOEPLAN_PROBE_DIR names; read at the end")
    end = parser.add_argument_group("how long; it also ends once the engine is gone after it served")
    end.add_argument("--interval", default="1", metavar="S", help="seconds from one poll to the next (default 1)")
    end.add_argument("--deadline", default="3600", metavar="S", help="most seconds of the whole run (default 3600)")
    end.add_argument("--until-file", metavar="FILE", help="end the run once this file is there")
    add_observation(parser)


def run(args: argparse.Namespace) -> int:
    """Poll until the end and write the record; 130 where it was stopped, 1 where a part could not be read."""
    from moeplan.cli.main import EXIT_INTERRUPTED, EXIT_NOT_READY, EXIT_OK
    from moeplan.cli.output import note
    from moeplan.errors import escape
    from moeplan.workflows.collect_metrics import collect_metrics

    made = collect_metrics(_run(args), observation_context(args), args.output, note)
    show_collected(made, args.json)
    if made.interrupted:
        note(f"stopped; what was seen lies in {escape(args.output, 400)}, and its run is open")
        return EXIT_INTERRUPTED
    note(f"wrote {escape(args.output, 400)}")
    return EXIT_NOT_READY if any(one.severity == "error" for one in made.findings) else EXIT_OK


def _run(args: argparse.Namespace) -> MetricsRun:
    from pathlib import Path

    from moeplan.collectors.endpoint_requests import api_key
    from moeplan.workflows.collect_metrics import MetricsRun

    interval, most = seconds("--interval", args.interval), seconds("--deadline", args.deadline)
    require_range("--interval", interval, 10**8, 60 * 10**9)
    require_range("--deadline", most, interval, 7 * 86_400 * 10**9)
    return MetricsRun(
        endpoints=tuple(_endpoint(text) for text in args.endpoint),
        watched=_watched(args),
        gpu_command=_tool(args),
        interval_ns=interval,
        most_ns=most,
        end_file=None if args.until_file is None else Path(args.until_file),
        probe=_probe(args.probe_dir),
        key=api_key(args.api_key_env),
        ca_file=args.ca_file,
    )


def _endpoint(text: str) -> tuple[str | None, str]:
    import re

    match = re.fullmatch(r"(?:([a-z0-9][a-z0-9._-]{0,63})=)?(.*)", text, re.DOTALL)
    assert match is not None
    return match[1], match[2]


def _watched(args: argparse.Namespace) -> Watched:
    from moeplan.workflows.metrics_reader import Watched

    if args.pid is not None:
        require_range("--pid", args.pid, 1, 2**22)
    node, key = node_and_key(args)
    return Watched(node, key, args.pid, args.process_name, args.cpu_engine)


def _tool(args: argparse.Namespace) -> tuple[str, tuple[str, ...]] | None:
    """Return form and words of the tool; None where it is left out, or the endpoints tell of the devices."""
    import shlex
    import shutil

    from moeplan.errors import InputError, Issue, escape
    from moeplan.importers.nvidia_smi import QUERY

    nvidia = (f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits")
    amd = ("metric", "--mem-usage", "--power", "--json")
    if args.cpu_engine:
        return None
    if args.gpu_command is None:
        for form, name, rest in (("nvidia", "nvidia-smi", nvidia), ("amd", "amd-smi", amd)):
            found = shutil.which(name)
            if found is not None:
                return form, (found, *rest)
        return None
    try:
        words = shlex.split(args.gpu_command)
    except ValueError:
        words = []
    if not words:
        shown = escape(repr(args.gpu_command), 80)
        raise InputError(Issue("--gpu-command", "invalid_value", "not a command", "a program and its words", shown))
    form, rest = ("amd", amd) if "amd-smi" in words[-1] else ("nvidia", nvidia)
    return form, (*words, *rest)


def _probe(directory: str | None) -> Path | None:
    from pathlib import Path

    return None if directory is None else Path(directory)
