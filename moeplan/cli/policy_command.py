"""moeplan policy: write, validate or explain an auditor's policy."""

from __future__ import annotations

import argparse
from pathlib import Path

from moeplan.cli.actions import add_action, add_actions
from moeplan.errors import InputError, Issue, escape

EXAMPLE = "moeplan policy init --trust-key runner.pub --plan plan.json --checkpoint checkpoint.json -o policy.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = add_actions(parser, "init|validate|explain")
    init = add_action(actions, "init", "write a policy that trusts given keys and expects given inputs", EXAMPLE)
    init.add_argument(
        "--trust-key", action="append", required=True, metavar="PUB", help="public key in PEM; may be repeated"
    )
    init.add_argument(
        "--fingerprint",
        action="append",
        default=[],
        metavar="SHA256",
        help="the key's fingerprint, in the order of the keys",
    )
    init.add_argument(
        "--role",
        action="append",
        choices=("runner", "packer", "verifier"),
        help="what the keys may sign (default: all)",
    )
    init.add_argument("--plan", metavar="FILE", help="expect this plan's subject, workload and registry")
    init.add_argument("--checkpoint", metavar="FILE", help="expect this checkpoint")
    init.add_argument("--runtime", action="append", default=[], metavar="DIGEST", help="expect this runtime identity")
    init.add_argument(
        "--least-binding", choices=("declared", "revision", "hashed", "loaded"), help="of every gate (default: strong)"
    )
    init.add_argument("--test-keys", action="store_true", help="accept the published test key; for demonstrations only")
    init.add_argument("-o", "--output", metavar="FILE", help="write here (default: stdout)")
    init.add_argument("--json", action="store_true", help="errors as JSON; a policy is JSON in any case")
    for name, what in (("validate", "report every fault of a policy"), ("explain", "say in sentences what it demands")):
        one = add_action(actions, name, what, f"moeplan policy {name} policy.json")
        one.add_argument("file", metavar="FILE", help="policy, JSON or YAML")
        one.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return {"init": _init, "validate": _validate, "explain": _explain}[args.action](args)


def _init(args: argparse.Namespace) -> int:
    from moeplan.attest.policies import DEFAULT_BINDINGS, expect_subject, make_signer
    from moeplan.attest.trust import trusted_keys
    from moeplan.cli.inputs import read_document
    from moeplan.cli.output import emit_bytes, note
    from moeplan.model.checkpoint import CheckpointManifest
    from moeplan.model.plan import GATE_IDS, Plan
    from moeplan.model.policy import SIGNER_ROLES, LeastBinding, Policy
    from moeplan.wire.documents import dump_document
    from moeplan.wire.files import read_file, write_file

    if len(args.fingerprint) > len(args.trust_key):
        raise InputError(Issue("--fingerprint", "usage", "more fingerprints than keys", "one for each --trust-key"))
    wanted = [*args.fingerprint, *[None] * len(args.trust_key)]
    signers = tuple(
        make_signer(
            _name(path),
            read_file(path, max_bytes=1 << 20),
            args.role or SIGNER_ROLES,
            expected,
            source=escape(path, 400),
        )
        for path, expected in zip(args.trust_key, wanted, strict=False)
    )
    expects = None
    if args.plan is not None:
        checkpoint = read_document(args.checkpoint, CheckpointManifest) if args.checkpoint is not None else None
        expects = expect_subject(read_document(args.plan, Plan), checkpoint, args.runtime)
    elif args.checkpoint is not None or args.runtime:
        raise InputError(Issue("--plan", "usage", "a subject needs a plan", "--plan FILE"))
    bindings = DEFAULT_BINDINGS
    if args.least_binding is not None:
        bindings = tuple(LeastBinding(gate, args.least_binding) for gate in GATE_IDS)
    policy = Policy(expects=expects, signers=signers, least_binding=bindings, waivers=(), test_keys=args.test_keys)
    faults = tuple(policy.faults())
    if faults:
        raise InputError(*faults)
    trusted_keys(policy)
    if expects is None:
        note("note: the policy expects no subject, so nothing is ever ready under it; give --plan")
    if args.output is None:
        emit_bytes(dump_document(policy))
    else:
        write_file(args.output, dump_document(policy))
        note(f"wrote {escape(args.output, 400)}")
    return 0


def _name(path: str) -> str:
    import re

    name = re.sub(r"[^a-z0-9._-]+", "-", Path(path).stem.lower()).strip("-._")
    if not name:
        raise InputError(
            Issue("--trust-key", "invalid_name", "file name gives no signer id", "letters or digits", escape(path))
        )
    return name


def _validate(args: argparse.Namespace) -> int:
    from moeplan.attest.trust import trusted_keys
    from moeplan.cli.inputs import read_policy
    from moeplan.cli.output import emit_json, emit_text
    from moeplan.wire.documents import identify

    policy = read_policy(args.file)
    trusted_keys(policy)
    digest = identify(policy)
    if args.json:
        emit_json({"ok": True, "kind": policy.kind, "digest": digest})
    else:
        emit_text(f"ok  {digest}  {escape(args.file, 400)}")
    return 0


def _explain(args: argparse.Namespace) -> int:
    from moeplan.attest.policies import explain_policy
    from moeplan.cli.inputs import read_policy
    from moeplan.cli.output import emit_json, emit_text

    sentences = explain_policy(read_policy(args.file))
    if args.json:
        emit_json({"sentences": list(sentences)})
    else:
        for sentence in sentences:
            emit_text(sentence)
    return 0
