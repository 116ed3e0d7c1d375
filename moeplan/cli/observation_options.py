"""What the commands that write observations share: options, context, output. One meaning in every command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moeplan.cli.deployment_options import add_runtime, add_serving, read_deployment, runtime_identity

if TYPE_CHECKING:
    from moeplan.model.finding import Finding
    from moeplan.wire.observation import MadeObservation, ObservationContext
    from moeplan.workflows.collected import CollectedObservation

__all__ = [
    "add_observation",
    "add_pseudonym_key",
    "observation_context",
    "pseudonym_key",
    "read_given",
    "show_collected",
    "write_observations",
]


def add_observation(parser: argparse.ArgumentParser) -> None:
    """Add plan, checkpoint, runtime, serving, ``-o`` and ``--json``."""
    parser.add_argument("--plan", required=True, metavar="FILE", help="plan, form 1.1.0")
    parser.add_argument("--checkpoint", required=True, metavar="FILE", help="manifest of the checkpoint that served")
    add_runtime(parser, required=True)
    add_serving(parser)
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="directory to make; missing or empty")
    parser.add_argument("--json", action="store_true", help='print {"records": […], "findings": […]}')


def add_pseudonym_key(parser: argparse.ArgumentParser) -> None:
    """Add ``--pseudonym-key``."""
    parser.add_argument(
        "--pseudonym-key",
        required=True,
        metavar="FILE",
        help="key of the pseudonyms of nodes and devices; made where it is missing, never packed",
    )


def pseudonym_key(args: argparse.Namespace) -> bytes:
    """Return the key that ``--pseudonym-key`` names; raises as ``read_pseudonym_key``."""
    from moeplan.wire.pseudonym_key import read_pseudonym_key

    return read_pseudonym_key(args.pseudonym_key)


def observation_context(args: argparse.Namespace) -> ObservationContext:
    """Return the plan's digest and the deployment that the options state.

    Raises:
        InputError: a document or an option is malformed.
        StoreError: a file cannot be read.
    """
    from moeplan.cli.inputs import read_document
    from moeplan.model.checkpoint import CheckpointManifest
    from moeplan.model.plan import Plan
    from moeplan.wire.documents import identify
    from moeplan.wire.observation import ObservationContext

    runtime = runtime_identity(args)
    assert runtime is not None, "one of the two options is required"
    root = read_document(args.checkpoint, CheckpointManifest).root
    plan = identify(read_document(args.plan, Plan))
    return ObservationContext(plan, read_deployment(args, root, runtime))


def read_given(path: str, max_bytes: int) -> tuple[str, bytes]:
    """Return a given file's name, without its directories, and its bytes."""
    from moeplan.wire.files import read_file

    return Path(path).name, read_file(path, max_bytes=max_bytes)


def write_observations(
    args: argparse.Namespace, made: Sequence[MadeObservation], findings: Sequence[Finding] = ()
) -> int:
    """Write the directory whole or not at all, show records and findings, and return the exit code."""
    from moeplan.bundle.staging import staged_directory, write_member
    from moeplan.cli.output import emit_json, emit_text, note
    from moeplan.errors import escape
    from moeplan.wire.converter import unstructure

    with staged_directory(args.output) as root:
        for observation in made:
            for path, data in observation.files.items():
                write_member(root, path, (data,))
    if args.json:
        records = [{"path": one.path, "digest": one.digest, "type": one.record.type} for one in made]
        emit_json({"records": records, "findings": [unstructure(item) for item in findings]})
    else:
        for one in made:
            emit_text(f"{one.path} {one.digest}")
        for finding in findings:
            where = f" ({finding.where})" if finding.where else ""
            note(f"{finding.severity}: {finding.code}{where}: {finding.message}")
    note(f"wrote {escape(args.output, 400)}")
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def show_collected(made: CollectedObservation, as_json: bool) -> None:
    """Print what a collector leaves: its record, and on standard error what a person should know."""
    from moeplan.cli.output import emit_json, emit_text, note
    from moeplan.wire.converter import unstructure
    from moeplan.wire.documents import identify

    record = {"path": made.made.path, "digest": made.made.digest, "type": made.made.record.type}
    if as_json:
        run = {"digest": identify(made.manifest), "run": made.manifest.run, "state": made.manifest.state}
        findings = [unstructure(item) for item in made.findings]
        emit_json({"records": [record], "run": run, "findings": findings})
        return
    emit_text(f"{made.made.path} {made.made.digest}")
    for finding in made.findings:
        note(f"{finding.severity}: {finding.code}: {finding.message}")
