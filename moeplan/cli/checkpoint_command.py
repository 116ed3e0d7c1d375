"""``moeplan checkpoint``: digest a checkpoint directory, or verify one against its manifest."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moeplan.cli.actions import add_action, add_actions
from moeplan.cli.deployment_options import add_runtime, add_serving, read_deployment, runtime_identity
from moeplan.cli.output import emit_bytes, emit_json, emit_text, note, table
from moeplan.errors import InputError, Issue, escape

if TYPE_CHECKING:
    from moeplan.checkpoint.manifest import Digested
    from moeplan.model.deployment import RuntimeIdentity
    from moeplan.model.evidence import Interval
    from moeplan.model.finding import Finding
    from moeplan.wire.observation import MadeObservation

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan checkpoint digest ./tiny-moe -o checkpoint.json"

_RECORD_OPTIONS = ("plan", "node", "runtime_image", "runtime_packages", "serving_node", "arguments_file")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the two actions and their options."""
    actions = add_actions(parser, "digest|verify")
    digest = add_action(
        actions,
        "digest",
        "hash every file, read every safetensors header, write the manifest",
        EXAMPLE,
        "Hash every file of a checkpoint directory and read every safetensors header.\n"
        "Exit 1 where the index disagrees with the files; the manifest is written all the same.",
    )
    digest.add_argument("directory", metavar="DIR", type=Path, help="the checkpoint directory")
    digest.add_argument("-o", "--output", metavar="FILE", type=Path, help="where to write the manifest")
    digest.add_argument("--repository", metavar="OWNER/NAME", help="where it was published (declared, not proven)")
    digest.add_argument("--revision", metavar="SHA", help="its immutable revision, 40 hex digits (declared)")
    _add_common(digest)
    record = digest.add_argument_group("evidence record", "all of --record, --plan, --node and one runtime identity")
    record.add_argument("--record", metavar="FILE", type=Path, help="also write a checkpoint_digest evidence record")
    record.add_argument(
        "--tensors", action="store_true", help="digest each tensor too; --record then names a directory to make"
    )
    record.add_argument("--plan", metavar="PLAN", type=Path, help="the plan the record is evidence for")
    record.add_argument("--node", metavar="NAME", help="a pseudonym of the node whose mount is read")
    add_runtime(record)
    add_serving(record)
    verify = add_action(
        actions,
        "verify",
        "name every difference between a manifest and a directory",
        "moeplan checkpoint verify checkpoint.json ./tiny-moe",
        "Name every difference between a manifest and a directory. Exit 1 where there is any.",
    )
    verify.add_argument("manifest", metavar="MANIFEST", type=Path, help="checkpoint.json")
    verify.add_argument("directory", metavar="DIR", type=Path, help="the checkpoint directory")
    _add_common(verify)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", metavar="N", type=int, help="hashing threads (default: the CPUs, at most 16)")
    parser.add_argument("--json", action="store_true", help="JSON alone on stdout")


def run(args: argparse.Namespace) -> int:
    """Run one action and return the exit code."""
    return _digest(args) if args.action == "digest" else _verify(args)


def _digest(args: argparse.Namespace) -> int:
    from moeplan.checkpoint.manifest import digest_checkpoint
    from moeplan.wire.documents import dump_document
    from moeplan.wire.files import write_file

    _check_outputs(args)
    plan, runtime = _record_inputs(args)
    start = _seconds()
    digested = digest_checkpoint(
        args.directory,
        repository=args.repository,
        revision=args.revision,
        workers=args.workers,
        progress=_progress(),
        tensor_digests=args.tensors,
    )
    interval = _interval(start)
    data = dump_document(digested.manifest)
    write_record = None if runtime is None else _record(args, digested, plan, runtime, interval)
    if args.output is not None:
        write_file(args.output, data)
    if write_record is not None:
        write_record()
    if args.json:
        emit_bytes(data)
    else:
        emit_text(_summary(digested))
    for finding in digested.findings:
        note(f"{finding.severity}: {finding.code}: {finding.message}")
    return 1 if any(finding.severity == "error" for finding in digested.findings) else 0


def _summary(digested: Digested) -> str:
    from moeplan.units import format_bytes, format_count

    manifest = digested.manifest
    index = "none" if manifest.index is None else "agrees" if manifest.index.agrees else "DISAGREES"
    if manifest.index is not None and manifest.index.total_size is not None:
        index += f" (total_size {format_count(manifest.index.total_size)})"
    total, held = digested.total_bytes, manifest.tensor_bytes
    rows = [
        ("root", manifest.root),
        ("files", format_count(len(manifest.files))),
        ("bytes", f"{format_count(total)} ({format_bytes(total)})"),
        ("tensors", format_count(len(manifest.tensors))),
        ("tensor bytes", f"{format_count(held)} ({format_bytes(held)})"),
        ("index", index),
    ]
    return table(("checkpoint", str(manifest.repository or "")), rows)


def _check_outputs(args: argparse.Namespace) -> None:
    from moeplan.wire.files import lies_within

    for option in ("output", "record"):
        path = getattr(args, option)
        if path is not None and lies_within(path, args.directory):
            raise InputError(
                Issue(
                    f"--{option}",
                    "output_inside_checkpoint",
                    "the output would become one of the checkpoint's files",
                    "a path outside the directory",
                    escape(str(path)),
                )
            )
    both = None not in (args.output, args.record)
    if both and lies_within(args.record, args.output) and lies_within(args.output, args.record):
        raise InputError(Issue("--record", "same_output", "the same file as --output", "another path"))


def _record_inputs(args: argparse.Namespace) -> tuple[str, RuntimeIdentity | None]:
    """Return the plan's identity and the runtime identity, read before the long hashing begins."""
    from moeplan.cli.inputs import read_document
    from moeplan.model.plan import Plan
    from moeplan.wire.documents import identify

    if args.record is None:
        stray = [name for name in _RECORD_OPTIONS if getattr(args, name) is not None]
        stray += ["tensors"] if args.tensors else []
        if stray:
            option = "--" + stray[0].replace("_", "-")
            raise InputError(Issue(option, "usage", "only for an evidence record", "--record FILE beside it"))
        return "", None
    _require(args.plan is not None, "--plan", "the plan the record is evidence for")
    _require(args.node is not None, "--node", "a pseudonym of the node whose mount is read")
    given = args.runtime_image is not None or args.runtime_packages is not None
    _require(given, "--runtime-image", "--runtime-image DIGEST or --runtime-packages FILE")
    _check_node(args.node)
    if args.tensors:
        _require_free(args.record)
    plan = read_document(args.plan, Plan)
    return identify(plan), runtime_identity(args)


def _require(given: bool, option: str, what: str) -> None:
    if not given:
        raise InputError(Issue(option, "usage", "--record needs it", what))


def _require_free(target: Path) -> None:
    """Refuse a directory that is in the way before the long hashing begins."""
    from moeplan.wire.files import require_free, store_error

    try:
        require_free(target)
    except OSError as error:
        raise store_error(target, error, "write") from None


def _check_node(name: str) -> None:
    import re

    from moeplan.model.fields import ID_PATTERN

    if re.fullmatch(ID_PATTERN.removeprefix("^").removesuffix("$"), name) is None:
        raise InputError(Issue("--node", "invalid_value", "value refused", f"text matching {ID_PATTERN}", escape(name)))


def _record(
    args: argparse.Namespace, digested: Digested, plan: str, runtime: RuntimeIdentity, interval: Interval
) -> Callable[[], None]:
    """Return what writes the record: made first, so that nothing is written where the model refuses it."""
    from moeplan.checkpoint.record import make_record, make_tensor_record
    from moeplan.version import VERSION
    from moeplan.wire.documents import dump_document
    from moeplan.wire.files import write_file

    common = {
        "plan": plan,
        "node": args.node,
        "deployment": read_deployment(args, digested.manifest.root, runtime),
        "interval": interval,
        "version": VERSION,
    }
    if digested.tensors is None:
        data = dump_document(make_record(digested.manifest, **common))
        return lambda: write_file(args.record, data)
    made = make_tensor_record(digested.manifest, digested.tensors, **common)
    return lambda: _write_directory(args.record, made)


def _write_directory(target: Path, made: MadeObservation) -> None:
    from moeplan.bundle.staging import staged_directory, write_member

    with staged_directory(target) as root:
        for path, data in made.files.items():
            write_member(root, path, (data,))


def _seconds() -> int:
    import time

    return time.time_ns() // 10**9


def _interval(start: int) -> Interval:
    """Return whole seconds that enclose everything since ``start``: the end is rounded up."""
    from moeplan.model.evidence import Interval
    from moeplan.units import format_instant

    return Interval(start=format_instant(start), end=format_instant(max(start, _seconds() + 1)))


def _verify(args: argparse.Namespace) -> int:
    from moeplan.checkpoint.manifest import verify_checkpoint
    from moeplan.cli.inputs import read_document
    from moeplan.model.checkpoint import CheckpointManifest

    manifest = read_document(args.manifest, CheckpointManifest)
    findings = verify_checkpoint(manifest, args.directory, workers=args.workers, progress=_progress())
    if args.json:
        emit_json({"ok": not findings, "findings": [_plain(finding) for finding in findings]})
    elif findings:
        emit_text(_differences(findings))
    else:
        emit_text(f"same: {len(manifest.files)} files, root {manifest.root}")
    return 1 if findings else 0


def _plain(finding: Finding) -> object:
    from moeplan.wire.converter import unstructure

    return unstructure(finding)


def _differences(findings: Sequence[Finding]) -> str:
    rows = [(finding.code, finding.message) for finding in findings]
    return table(("difference", "what"), rows) + f"\n{len(findings)} differences"


def _progress() -> Callable[[int, int], None] | None:
    """Return a progress line on stderr, ten times a second at most; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        return None
    import time

    from moeplan.units import format_bytes

    shown = 0

    def tell(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic_ns()
        if now - shown >= 10**8 or done == total:
            shown = now
            end = "\n" if done == total else ""
            sys.stderr.write(f"\rhashed {format_bytes(done)} of {format_bytes(total)}\033[K{end}")
            sys.stderr.flush()

    return tell
