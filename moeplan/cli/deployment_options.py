"""Options that say what serves: runtime identity, nodes, arguments. One meaning in every command that has them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from moeplan.errors import InputError, Issue, escape

if TYPE_CHECKING:
    from moeplan.model.deployment import Deployment, RoleSpec, RuntimeIdentity

__all__ = [
    "add_draft",
    "add_roles",
    "add_runtime",
    "add_serving",
    "draft_root",
    "read_deployment",
    "roles",
    "runtime_identity",
]

T = TypeVar("T")

_DIGEST = r"sha256:[0-9a-f]{64}"
_IMAGE = re.compile(rf"(?:[^@\s]+@)?({_DIGEST})", re.ASCII)
_SECRET = re.compile(r"--?(?:[a-z0-9]+[-_])*(?:api[-_]?key|hf[-_]token|password|secret)s?(?:=|$|\s)", re.IGNORECASE)
_MOST_ARGUMENTS_BYTES = 1 << 20


def add_runtime(parser: argparse._ActionsContainer, *, required: bool = False) -> None:
    """Add ``--runtime-image`` and ``--runtime-packages``, of which one may be given."""
    runtime = parser.add_mutually_exclusive_group(required=required)
    runtime.add_argument("--runtime-image", metavar="DIGEST", help="the OCI image's digest: sha256:… or name@sha256:…")
    runtime.add_argument(
        "--runtime-packages", metavar="FILE", help="list of the installed distributions, or its digest sha256:…"
    )


def add_roles(parser: argparse._ActionsContainer) -> None:
    """Add ``--role`` and the options of :func:`add_runtime`, which are role ``serve``'s."""
    parser.add_argument(
        "--role",
        action="append",
        metavar="NAME[=DIGEST]",
        help="a role that serves, with its image's digest; once for each, such as prefill and decode",
    )
    add_runtime(parser)


def roles(args: argparse.Namespace) -> tuple[RoleSpec, ...]:
    """Return the roles that the options name; ``serve`` alone where they name none.

    Raises:
        InputError: a digest is none, a role is named twice, or ``--role`` stands beside an option of role ``serve``.
    """
    from moeplan.model.deployment import RoleSpec, RuntimeIdentity

    serve = runtime_identity(args)
    if not args.role:
        return (RoleSpec("serve", serve),)
    if serve is not None:
        message = "--runtime-image and --runtime-packages are role serve's"
        raise InputError(Issue("--role", "usage", message, "--role serve=DIGEST, or none of these"))
    found: dict[str, RoleSpec] = {}
    for given in args.role:
        name, joined, digest = given.partition("=")
        match = _IMAGE.fullmatch(digest) if joined else None
        if joined and match is None:
            raise _no_digest("--role", digest, "a tag can move; name the digest that was pulled")
        if name in found:
            raise InputError(Issue("--role", "duplicate_name", "role named twice", "each role once", escape(name, 60)))
        found[name] = RoleSpec(name, None if match is None else RuntimeIdentity(name, "oci_image", match[1]))
    return tuple(found.values())


def runtime_identity(args: argparse.Namespace) -> RuntimeIdentity | None:
    """Return the runtime identity of role ``serve``, None where neither option was given.

    Raises:
        InputError: not a digest; a tag can move, so it is none.
    """
    from moeplan.model.deployment import RuntimeIdentity

    if args.runtime_image is not None:
        match = _IMAGE.fullmatch(args.runtime_image)
        if match is None:
            step = "a tag can move; name the digest that was pulled"
            raise _no_digest("--runtime-image", args.runtime_image, step)
        return RuntimeIdentity("serve", "oci_image", match[1])
    if args.runtime_packages is None:
        return None
    if re.fullmatch(_DIGEST, args.runtime_packages):
        return RuntimeIdentity("serve", "distributions", args.runtime_packages)
    if args.runtime_packages.startswith("sha256:"):
        raise _no_digest("--runtime-packages", args.runtime_packages, "or give the file itself")
    from moeplan.digest import digest_bytes
    from moeplan.wire.files import read_file

    return RuntimeIdentity("serve", "distributions", digest_bytes(read_file(args.runtime_packages)))


def _no_digest(option: str, got: str, step: str) -> InputError:
    expected = "sha256: and 64 lower-case hex digits"
    return InputError(Issue(option, "invalid_digest", "not a digest", expected, escape(repr(got), 100), step))


def add_serving(parser: argparse._ActionsContainer) -> None:
    """Add what else identifies the deployment: its nodes and the engine's arguments."""
    parser.add_argument(
        "--serving-node",
        action="append",
        metavar="NAME",
        help="pseudonym of a node that serves; once for each node of the deployment",
    )
    parser.add_argument("--arguments-file", metavar="FILE", help="the engine's resolved arguments, one a line")
    add_draft(parser)
    parser.add_argument(
        "--manifest-set", metavar="FILE|DIGEST", help="the manifest-set.json of what was deployed, or its digest"
    )


def add_draft(parser: argparse._ActionsContainer) -> None:
    """Add ``--draft``: which draft checkpoint speculates."""
    parser.add_argument(
        "--draft", metavar="FILE|DIGEST", help="the draft's checkpoint manifest, or its root digest: speculation"
    )


def draft_root(args: argparse.Namespace) -> str | None:
    """Return the draft's root digest, given as such or of its checkpoint manifest; None without a draft.

    Raises:
        InputError: neither a digest nor a checkpoint manifest.
    """
    from moeplan.model.checkpoint import CheckpointManifest

    return _digest_or(args.draft, "--draft", CheckpointManifest, lambda manifest: manifest.root)


def _manifest_set(args: argparse.Namespace) -> str | None:
    from moeplan.model.manifest_set import ManifestSet
    from moeplan.wire.documents import identify

    return _digest_or(args.manifest_set, "--manifest-set", ManifestSet, identify)


def _digest_or(given: str | None, option: str, cls: type[T], digest_of: Callable[[T], str]) -> str | None:
    if given is None:
        return None
    if given.startswith("sha256:"):
        if re.fullmatch(_DIGEST, given):
            return given
        raise _no_digest(option, given, "or give the file itself")
    from moeplan.cli.inputs import read_document

    return digest_of(read_document(given, cls))


def read_deployment(args: argparse.Namespace, checkpoint_root: str, runtime: RuntimeIdentity) -> Deployment:
    """Return the deployment that the options describe. Records of one deployment must be made with the same ones.

    Raises:
        InputError: a node's name or an argument is malformed.
    """
    from moeplan.model.deployment import Deployment

    try:
        return Deployment(
            checkpoint_root=checkpoint_root,
            draft_checkpoint_root=draft_root(args),
            runtimes=(runtime,),
            arguments=None if args.arguments_file is None else _arguments(args.arguments_file),
            environment=None,
            manifest_set=_manifest_set(args),
            nodes=None if args.serving_node is None else tuple(sorted(set(args.serving_node))),
            accelerators=None,
        )
    except InputError as error:
        option = {"$.nodes": "--serving-node", "$.arguments": "--arguments-file"}
        raise InputError(
            *(
                Issue(option.get(i.path.split("[")[0], i.path), i.code, i.message, i.expected, i.got, i.next)
                for i in error.issues
            )
        ) from None


def _arguments(path: str) -> tuple[str, ...]:
    from moeplan.wire.files import read_file

    try:
        text = read_file(path, max_bytes=_MOST_ARGUMENTS_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            Issue(escape(path, 400), "wrong_encoding", f"not UTF-8 at byte {error.start}", "UTF-8")
        ) from None
    words = tuple(line for line in text.splitlines() if line)
    for number, word in enumerate(words, 1):
        if _SECRET.match(word):
            where, message = (
                escape(path, 400),
                f"argument {number} gives the engine a key, and a record holds arguments",
            )
            step = "give the engine its key by VLLM_API_KEY or HF_TOKEN, and take the argument out of the file"
            raise InputError(Issue(where, "secret_argument", message, "arguments without keys", None, step))
    return words
