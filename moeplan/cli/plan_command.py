"""``moeplan plan``: one plan from options, or one a line with ``--batch``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NoReturn

from moeplan.cli.deployment_options import add_draft, add_roles, draft_root, roles
from moeplan.cli.objective_options import add_objectives, objectives
from moeplan.cli.output import emit_bytes, emit_text, note, table
from moeplan.errors import InputError, Issue, escape
from moeplan.planning.command_line import OBJECTIVE_OPTIONS

if TYPE_CHECKING:
    from moeplan.model.deployment import DeploymentSpec
    from moeplan.model.plan import CheckpointRef, Plan, Scenario
    from moeplan.model.registry import Registry

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan plan kimi-k3 h200 --devices 8"

DEFAULT_DEVICES = 8

_INTEGERS = {
    "devices": ("--devices", "N", f"accelerators asked for (default {DEFAULT_DEVICES})"),
    "devices_per_node": ("--devices-per-node", "N", "accelerators of one node (default: the registry's, 8)"),
    "input_tokens": ("--input-tokens", "N", "prompt tokens of a request (default 4096)"),
    "output_tokens": ("--output-tokens", "N", "generated tokens of a request (default 1024)"),
    "concurrency": ("--concurrency", "N", "requests in flight (default 1)"),
    "target_ttft_ms": ("--target-ttft-ms", "MS", "limit of the p95 time to first token (default 1000)"),
    "target_inter_token_ms": ("--target-inter-token-ms", "MS", "limit of the p95 gap between chunks (default 50)"),
    "prefix_cache_share_basis_points": (
        "--prefix-cache-share-bps",
        "BPS",
        "most prompt tokens the workload expects from the prefix cache, in basis points (default: undeclared)",
    ),
}
_PARALLEL = ("tensor", "pipeline", "data", "expert")
_TEXTS = {
    "runtime": ("--runtime", "NAME", "engine that serves (default vllm)"),
    "availability": ("--availability", "single|ha", "ha adds that losing a worker loses no request (default single)"),
}
_PATHS = {
    "model": "MODEL",
    "hardware": "HARDWARE",
    "devices": "--devices",
    "devicesPerNode": "--devices-per-node",
    "reserveBasisPoints": "--reserve-bps",
    "runtime": "--runtime",
    "inputTokens": "--input-tokens",
    "outputTokens": "--output-tokens",
    "concurrency": "--concurrency",
    "targetTtftMs": "--target-ttft-ms",
    "targetInterTokenMs": "--target-inter-token-ms",
    "prefixCacheShareBasisPoints": "--prefix-cache-share-bps",
    "availability": "--availability",
    "precision": "--precision",
    "profile": "--profile",
    "draftCheckpointRoot": "--draft",
    "role": "--role",
    "tensorParallelSize": "--tensor-parallel-size",
    "pipelineParallelSize": "--pipeline-parallel-size",
    "dataParallelSize": "--data-parallel-size",
    "expertParallelSize": "--expert-parallel-size",
}
"""Option by the attribute whose value it sets, for messages."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options. Values stay text here, so that a bad one is named as an issue with its option."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="id, alias, name or repository of a model")
    parser.add_argument("hardware", metavar="HARDWARE", nargs="?", help="id, alias or name of an accelerator")
    for name, (option, metavar, text) in {**_INTEGERS, **_TEXTS}.items():
        parser.add_argument(option, dest=name, metavar=metavar, help=text)
    parser.add_argument(
        "--reserve-bps", metavar="BPS", help="memory held back on each accelerator, 0 to 9999 (default 1300)"
    )
    parser.add_argument("--reserve-pct", metavar="PCT", help="the same in percent, such as 12.5")
    deployment = parser.add_argument_group("deployment", "what a deployment decides; whatever is left out stays open")
    for word in _PARALLEL:
        deployment.add_argument(f"--{word}-parallel-size", metavar="N", help=f"{word}-parallel size of the engine")
    deployment.add_argument("--precision", metavar="NAME", help="precision of the weights as served, such as fp8")
    deployment.add_argument("--profile", metavar="P", help="a plugin's profile, as 'moeplan profiles' lists them")
    add_draft(deployment)
    add_roles(deployment)
    add_objectives(parser)
    parser.add_argument(
        "--site", metavar="FILE", help="the site: its profile and images, and its plugin's criteria, enter the plan"
    )
    parser.add_argument(
        "--checkpoint", metavar="FILE", help="checkpoint manifest whose exact tensor bytes replace the registry's"
    )
    parser.add_argument("--registry", metavar="X", help="registry version or file (default 1.1.0)")
    parser.add_argument(
        "--schema-version", metavar="1.0.0|1.1.0", help="form of the plan (default 1.1.0; 1.0.0 is an export only)"
    )
    parser.add_argument("--envelope", action="store_true", help="wrap form 1.0.0 with API and registry version")
    parser.add_argument("--batch", metavar="FILE", help="JSON Lines of scenarios, - for standard input")
    parser.add_argument("--output", "-o", metavar="FILE", help="write the plan, or the plans of --batch, to a file")
    parser.add_argument("--require", metavar="validation_required", help="exit 1 unless the plan has this status")
    parser.add_argument("--json", action="store_true", help="print the plan's bytes")


def run(args: argparse.Namespace) -> int:
    """Make one plan, or one a line."""
    form = _form(args)
    if args.require not in (None, "validation_required"):
        _refuse("--require", "invalid_value", "no such status to require", "validation_required", args.require)
    if args.batch is not None:
        return _run_batch(args, form)
    return _run_one(args, form)


def _refuse(path: str, code: str, message: str, expected: str, got: str | None = None) -> NoReturn:
    raise InputError(Issue(path, code, message, expected, None if got is None else escape(repr(got), 80)))


def _form(args: argparse.Namespace) -> str:
    form: str | None = args.schema_version
    if form not in (None, "1.0.0", "1.1.0"):
        _refuse("--schema-version", "unsupported_version", "no such form of a plan", "1.0.0 or 1.1.0", form)
    if args.envelope and form == "1.1.0":
        _refuse("--envelope", "usage", "only form 1.0.0 has an envelope", "--schema-version 1.0.0")
    return form or ("1.0.0" if args.envelope else "1.1.0")


def _run_batch(args: argparse.Namespace, form: str) -> int:
    from moeplan.catalogue.registries import load_registry
    from moeplan.cli.plan_batch import run_batch

    scenario_options = (*_INTEGERS, *_TEXTS, "model", "hardware", "reserve_bps", "reserve_pct", "precision", "require")
    further = (
        "runtime_image",
        "runtime_packages",
        "checkpoint",
        "profile",
        "draft",
        "role",
        "site",
        *(f"{word}_parallel_size" for word in _PARALLEL),
        *OBJECTIVE_OPTIONS,
        "quality",
    )
    for name in (*scenario_options, *further):
        if getattr(args, name) is not None:
            option = OBJECTIVE_OPTIONS.get(name) or _INTEGERS.get(name, _TEXTS.get(name, (f"--{name}",)))[0]
            option = option.replace("_", "-")
            _refuse(
                option if name not in ("model", "hardware") else name.upper(),
                "usage",
                "does not go with --batch, whose lines hold the scenarios",
                "no scenario options beside --batch",
            )
    return run_batch(load_registry(args.registry), args.batch, args.output, form, args.envelope)


def _run_one(args: argparse.Namespace, form: str) -> int:
    from moeplan.catalogue.registries import load_registry
    from moeplan.planning.builder import plan
    from moeplan.planning.scenario import in_scenario_keys

    for name in ("model", "hardware"):
        if getattr(args, name) is None:
            _refuse(name.upper(), "usage", f"no {name} given", "moeplan plan MODEL HARDWARE")
    registry = load_registry(args.registry)
    checkpoint = None if args.checkpoint is None else _checkpoint(args.checkpoint)
    try:
        scenario = _scenario(args, checkpoint)
        made = plan(registry, scenario) if args.site is None else _on_site(registry, scenario, args.site, form)
    except InputError as error:
        raise in_scenario_keys(error, _PATHS) from None
    _emit(args, made, form)
    return 1 if args.require is not None and made.readiness.status != args.require else 0


def _on_site(registry: Registry, scenario: Scenario, path: str, form: str) -> Plan:
    from moeplan.site.reading import read_partial_site, site_values
    from moeplan.workflows.plan_on_site import plan_on_site

    if form == "1.0.0":
        _refuse("--site", "usage", "form 1.0.0 has no place for a plugin's criteria", "--schema-version 1.1.0")
    return plan_on_site(registry, scenario, site_values(read_partial_site(path)))


def _emit(args: argparse.Namespace, made: Plan, form: str) -> None:
    if args.json or args.output is not None:
        from moeplan.planning.export import plan_bytes

        data = plan_bytes(made, form, envelope=args.envelope)
        if args.output is not None:
            from moeplan.wire.files import write_file

            write_file(args.output, data)
            note(f"wrote {escape(args.output, 400)}")
        if args.json:
            emit_bytes(data)
            return
    emit_text(_summary(made))


def _scenario(args: argparse.Namespace, checkpoint: CheckpointRef | None) -> Scenario:
    from moeplan.model.plan import Scenario
    from moeplan.planning.options import parse_integer, parse_reserve

    values: dict[str, Any] = {
        name: parse_integer(option, getattr(args, name))
        for name, (option, _, _) in _INTEGERS.items()
        if getattr(args, name) is not None
    }
    values |= {name: getattr(args, name) for name in _TEXTS if getattr(args, name) is not None}
    values.setdefault("devices", DEFAULT_DEVICES)
    reserve = parse_reserve(args.reserve_bps, args.reserve_pct)
    if reserve is not None:
        values["reserve_basis_points"] = reserve
    return Scenario(
        args.model,
        args.hardware,
        **values,
        checkpoint=checkpoint,
        deployment=_deployment(args),
        objectives=objectives(args),
    )


def _deployment(args: argparse.Namespace) -> DeploymentSpec | None:
    names = [f"{word}_parallel_size" for word in _PARALLEL]
    given = [*names, "precision", "profile", "draft", "role", "runtime_image", "runtime_packages"]
    if all(getattr(args, name) is None for name in given):
        return None
    from moeplan.model.deployment import DeploymentSpec, Parallelism
    from moeplan.planning.options import parse_integer

    sizes = [
        None if getattr(args, name) is None else parse_integer("--" + name.replace("_", "-"), getattr(args, name))
        for name in names
    ]
    return DeploymentSpec(args.profile, Parallelism(*sizes), args.precision, draft_root(args), roles(args))


def _checkpoint(path: str) -> CheckpointRef:
    from moeplan.cli.inputs import read_document
    from moeplan.model.checkpoint import CheckpointManifest
    from moeplan.model.plan import CheckpointRef
    from moeplan.wire.documents import identify

    manifest = read_document(path, CheckpointManifest)
    return CheckpointRef(identify(manifest), manifest.root, manifest.tensor_bytes)


def _summary(made: Plan) -> str:
    target, gates = made.target, made.validation_gates
    rows = [
        ("plan", made.scenario_key),
        ("model", f"{made.artifact.model_name}, {made.artifact.repository}@{made.artifact.revision}"),
        ("target", f"{target.requested_accelerators} × {target.hardware_name}, {target.runtime}"),
        ("status", f"{made.readiness.status}: {made.readiness.reason}"),
        ("floor", f"{made.readiness.static_residency}: {_floor(made)}"),
        ("next", f"{made.next_action.code}: {made.next_action.summary}"),
        ("registry", f"{made.registry.version} {made.registry.digest}"),
    ]
    head = "\n".join(f"{name.ljust(10)}{escape(text, 400)}" for name, text in rows)
    return head + "\n\n" + table(("#", "gate", "status", "title"), [(g.order, g.id, g.status, g.title) for g in gates])


def _floor(made: Plan) -> str:
    from moeplan.units import format_basis_points, format_bytes

    floor, target = made.residency, made.target
    tensors = "tensor bytes unknown" if floor.tensor_bytes is None else f"{format_bytes(floor.tensor_bytes)} of tensors"
    if floor.bytes_per_accelerator is None or floor.usable_bytes_per_accelerator is None:
        return f"{tensors}, memory of one accelerator unknown"
    usable = (
        f"{format_bytes(floor.usable_bytes_per_accelerator)} usable of {format_bytes(floor.bytes_per_accelerator)} "
        f"after {format_basis_points(target.reserve_basis_points)}"
    )
    if floor.minimum_accelerators is None:
        return f"{tensors}, {usable}"
    return (
        f"{floor.minimum_accelerators} minimum, {floor.rounded_accelerators} rounded to {floor.rounded_nodes} node(s) "
        f"of {target.accelerators_per_node}, {target.requested_accelerators} asked for ({tensors}, {usable})"
    )
