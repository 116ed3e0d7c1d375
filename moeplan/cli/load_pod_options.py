"""Options of a load that is sent from a pod of the cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moeplan.site.load_pod import LoadPod

__all__ = ["add_pod", "load_pod", "show_pod"]

_IMAGE = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,400}@sha256:[0-9a-f]{64}"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._:@/-]{0,252}"


def add_pod(parser: argparse.ArgumentParser) -> None:
    """Add the pod's options."""
    group = parser.add_argument_group("from a pod of the cluster, with --kube-context")
    group.add_argument(
        "--load-image",
        metavar="IMAGE",
        help="send the load from a pod of this image, REPOSITORY@sha256:DIGEST, such as the serving image",
    )
    group.add_argument("--namespace", "-n", metavar="NAME", help="namespace of the pod")
    group.add_argument(
        "--pod-ready-within", default="600", metavar="S", help="wait so long for the pod to run (default 600)"
    )
    group.add_argument(
        "--render-only", action="store_true", help="print the pod and the Role that its maker needs; make nothing"
    )


def load_pod(args: argparse.Namespace) -> LoadPod | None:
    """Return the pod that the options ask for, or None.

    Raises:
        InputError: the image is not named by digest, a name is malformed, or options exclude one another.
    """
    import re

    from moeplan.cli.endpoint_options import seconds
    from moeplan.collectors.endpoint_address import parse_address
    from moeplan.errors import InputError, Issue, escape
    from moeplan.site.kubectl import Kubectl
    from moeplan.site.load_pod import LoadPod

    if args.load_image is None:
        if args.render_only:
            raise InputError(Issue("--load-image", "not_stated", "--render-only needs it", "REPOSITORY@sha256:DIGEST"))
        return None
    if re.fullmatch(_IMAGE, args.load_image) is None:
        shown = escape(repr(args.load_image), 200)
        message = "an image is named by its digest"
        raise InputError(Issue("--load-image", "invalid_value", message, "REPOSITORY@sha256:DIGEST", shown))
    for option, value in (("--kube-context", args.kube_context), ("--namespace", args.namespace)):
        if value is not None and re.fullmatch(_NAME, value) is None:
            shown = escape(repr(value), 80)
            raise InputError(Issue(option, "invalid_value", "not a name of Kubernetes", "a name", shown))
    if args.tool is not None:
        raise InputError(Issue("--tool", "usage", "a pod runs moeplan's own client", "no --tool with --load-image"))
    if args.through == "port-forward" or parse_address(args.url).local:
        raise InputError(Issue("--url", "usage", "a pod reaches no localhost of yours", "the address of the service"))
    ready = seconds("--pod-ready-within", args.pod_ready_within) // 10**9
    return LoadPod(Kubectl(args.kube_context, args.namespace), args.load_image, ready)


def show_pod(args: argparse.Namespace) -> int:
    """Print what would be made."""
    from moeplan.cli.main import EXIT_OK
    from moeplan.cli.output import emit_json
    from moeplan.site.load_pod import rendered_load

    pod: LoadPod | None = load_pod(args)
    assert pod is not None
    emit_json(rendered_load(pod.image, pod.lifetime_s))
    return EXIT_OK
