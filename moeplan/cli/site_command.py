"""``moeplan site``: begin a site file, look at nodes, take what was found into the file, validate it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moeplan.cli.actions import Actions, add_action, add_actions
from moeplan.cli.output import emit_bytes, emit_json, emit_text, note, table

if TYPE_CHECKING:
    from moeplan.model.site_probe import Look, SiteProbe
    from moeplan.site.merging import Merged

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = "moeplan site init --runtime vllm-cuda --profile single_node_tep -o site.yaml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = add_actions(parser, "init|probe|merge|validate")
    _add_init(actions)
    _add_probe(actions)
    _add_merge(actions)
    validate = add_action(
        actions, "validate", "validate a site file and name what is not filled in", "moeplan site validate site.yaml"
    )
    validate.add_argument("file", metavar="FILE", help="a site, YAML or JSON")
    validate.add_argument("--json", action="store_true", help="print the outcome as JSON")


def _add_init(actions: Actions[argparse.ArgumentParser]) -> None:
    init = add_action(actions, "init", "write a commented site file with all that a profile needs", EXAMPLE)
    init.add_argument("--runtime", required=True, metavar="NAME", help="the engine or a plugin's name")
    init.add_argument("--profile", required=True, metavar="ID", help="the profile, see 'moeplan profiles'")
    init.add_argument("--vendor", metavar="NAME", help="vendor of the accelerators, where several plugins fit")
    init.add_argument(
        "--schema", metavar="REF", help="what the first line points an editor at (default: the schema's id)"
    )
    init.add_argument("-o", "--output", metavar="FILE", help="write the file here (default: standard output)")


def _add_probe(actions: Actions[argparse.ArgumentParser]) -> None:
    probe = add_action(
        actions,
        "probe",
        "look at this host, or at a cluster's nodes through kubectl, and say how",
        "moeplan site probe --directory /data/models --json > probe.json",
    )
    probe.add_argument("--kube-context", metavar="NAME", help="look through kubectl, with this context")
    probe.add_argument("-n", "--namespace", metavar="NAME", help="look through kubectl; probe pods run here")
    probe.add_argument(
        "--image", metavar="REF", help="with kubectl: an image with python3 for a pod on each node (default: no pod)"
    )
    probe.add_argument(
        "--node", action="append", metavar="NAME", help="with kubectl: this node; may be repeated (default: all)"
    )
    probe.add_argument(
        "--directory", action="append", metavar="PATH", help="a directory on the nodes to look at; may be repeated"
    )
    probe.add_argument(
        "--deadline", type=int, metavar="S", help="seconds for one look (default: 10), or one node's pod (default: 180)"
    )
    probe.add_argument("-o", "--output", metavar="FILE", help="also write the probe here, for 'site merge'")
    probe.add_argument("--json", action="store_true", help="print the probe document")


def _add_merge(actions: Actions[argparse.ArgumentParser]) -> None:
    merge = add_action(
        actions,
        "merge",
        "put what probes found into a site file",
        "moeplan site merge site.yaml probe.json -o site.yaml",
        "Put what probes found into a site file: nulls are filled, what differs stands and is listed (exit 1).",
    )
    merge.add_argument("site", metavar="SITE", help="a site, filled in or not")
    merge.add_argument("probes", nargs="+", metavar="PROBE", help="documents of 'site probe'; later ones count more")
    merge.add_argument(
        "--prefer",
        choices=("site", "probe"),
        default="site",
        help="whose value stands where they differ (default: site)",
    )
    merge.add_argument("-o", "--output", metavar="FILE", help="write the file here (default: standard output)")
    merge.add_argument("--json", action="store_true", help="print what was filled and what differs, not the file")


def run(args: argparse.Namespace) -> int:
    """Run the action."""
    actions = {"init": _init, "probe": _probe, "merge": _merge, "validate": _validate}
    return actions[args.action](args)


def _init(args: argparse.Namespace) -> int:
    from moeplan.workflows.site import init_site

    text = init_site(args.runtime, args.profile, vendor=args.vendor, schema=args.schema)
    _write(args.output, text.encode("utf-8"))
    return 0


def _write(path: str | None, data: bytes) -> None:
    from moeplan.wire.files import write_file

    if path is None:
        emit_bytes(data)
    else:
        write_file(path, data)


def _probe(args: argparse.Namespace) -> int:
    from moeplan.wire.documents import dump_document

    probe = _look(args)
    data = dump_document(probe)
    if args.output is not None:
        _write(args.output, data)
    if args.json:
        emit_bytes(data)
    else:
        _print_probe(probe)
    looks = [look for node in probe.nodes for look in node.looks] + list(probe.looks)
    return 0 if any(look.outcome in ("found", "not_found") for look in looks) else 3


def _look(args: argparse.Namespace) -> SiteProbe:
    from moeplan.cli.inputs import instant_or_now
    from moeplan.site.kubectl import Kubectl
    from moeplan.site.probing import LOOK_DEADLINE_S, POD_DEADLINE_S, check_probe, probe_cluster, probe_here

    at, directories = instant_or_now(None), tuple(args.directory or ())
    cluster = any(value is not None for value in (args.kube_context, args.namespace, args.image, args.node))
    check_probe(directories, args.image, args.deadline, cluster=cluster)
    if not cluster:
        return probe_here(at, directories, args.deadline or LOOK_DEADLINE_S)
    return probe_cluster(
        at,
        Kubectl(args.kube_context, args.namespace),
        nodes=tuple(args.node or ()),
        directories=directories,
        image=args.image,
        deadline_s=args.deadline or POD_DEADLINE_S,
    )


def _print_probe(probe: SiteProbe) -> None:
    rows = [_row("cluster", look) for look in probe.looks]
    for node in probe.nodes:
        rows += [_row(node.values.name, look) for look in node.looks]
    emit_text(table(("node", "look", "outcome", "ms", "found, or why not", "how"), rows))
    for node in probe.nodes:
        for directory in node.directories:
            for caveat in directory.caveats:
                note(f"{node.values.name}: {directory.path}: {caveat}")


def _row(node: str, look: Look) -> tuple[object, ...]:
    what = look.what if look.subject is None else f"{look.what} {look.subject}"
    return node, what, look.outcome, look.milliseconds, look.found or look.why or "", look.how


def _merge(args: argparse.Namespace) -> int:
    from moeplan.cli.inputs import read_document
    from moeplan.errors import InputError, escape
    from moeplan.model.site_probe import SiteProbe
    from moeplan.site.merging import merge_probes
    from moeplan.wire.files import read_file
    from moeplan.wire.yaml_text import MAX_YAML_BYTES

    probes = [read_document(path, SiteProbe) for path in args.probes]
    try:
        merged = merge_probes(
            read_file(args.site, max_bytes=MAX_YAML_BYTES), probes, prefer_probe=args.prefer == "probe"
        )
    except InputError as error:
        error.source = escape(args.site, 400)
        raise
    if args.output is not None or not args.json:
        _write(args.output, merged.data)
    _tell_merge(merged, as_json=args.json)
    return 1 if any(not difference.settled for difference in merged.differences) else 0


def _tell_merge(merged: Merged, *, as_json: bool) -> None:
    if as_json:
        emit_json(
            {
                "filled": list(merged.filled),
                "differences": [
                    {"path": one.path, "site": one.site, "probe": one.probe, "settled": one.settled}
                    for one in merged.differences
                ],
                "notes": list(merged.notes),
                "keptComments": merged.kept_comments,
            }
        )
    for one in merged.differences:
        taken = "taken" if one.settled else "left as it is"
        note(f"{one.path}: the site says {one.site}, the probe {one.probe}: {taken}")
    for text in merged.notes:
        note(f"note: {text}")
    if not merged.kept_comments:
        note("note: the file was written anew; its comments could not be kept")
    note(f"{len(merged.filled)} values filled in")


def _validate(args: argparse.Namespace) -> int:
    from moeplan.errors import MoeplanError
    from moeplan.site.reading import read_site
    from moeplan.wire.documents import identify

    try:
        site = read_site(args.file)
    except MoeplanError as error:
        if args.json:
            emit_json({"ok": False, **error.to_json()})
            return 2
        raise
    digest = identify(site)
    if args.json:
        emit_json({"ok": True, "kind": "site", "digest": digest})
    else:
        emit_text(f"site is valid, {digest}")
    return 0
