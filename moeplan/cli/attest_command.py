"""moeplan attest: sign the records and the index of a bundle, or a verdict."""

from __future__ import annotations

import argparse

from moeplan.errors import InputError, Issue, escape

EXAMPLE = "moeplan attest bundle/ --key runner.pem"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("path", nargs="?", metavar="PATH", help="bundle directory")
    parser.add_argument("--key", required=True, metavar="PEM", help="private key: EC P-256, EC P-384 or Ed25519")
    parser.add_argument("--only", choices=("records", "index"), help="sign only the records, or only the index")
    parser.add_argument("--verdict", metavar="FILE", help="sign this readiness verdict instead")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="with --verdict: write the attestation here, not into PATH"
    )
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from moeplan.cli.output import emit_json, emit_text
    from moeplan.signing.keys import load_private_key
    from moeplan.wire.files import read_file

    key = load_private_key(read_file(args.key, max_bytes=1 << 20), source=args.key)
    if args.verdict is not None:
        written, removed = [_attest_verdict(args, key)], []
    else:
        if args.path is None or args.output is not None:
            raise InputError(
                Issue("PATH", "usage", "which bundle?", "a bundle directory", next="or give --verdict FILE")
            )
        from moeplan.workflows.attest_bundle import attest_bundle

        signed = attest_bundle(args.path, key, records=args.only != "index", index=args.only != "records")
        written, removed = list(signed.written), list(signed.removed)
    if args.json:
        emit_json({"written": written, "removed": removed})
    else:
        for name in removed:
            emit_text(f"removed  {name}")
        for name in written:
            emit_text(f"signed   {name}")
        if not written:
            emit_text("nothing to do: this signer's attestations stand already")
    return 0


def _attest_verdict(args: argparse.Namespace, key: object) -> str:
    from moeplan.attest.statements import verdict_statement
    from moeplan.cli.inputs import read_document
    from moeplan.model.verdict import Verdict
    from moeplan.signing.sigstore_bundle import seal
    from moeplan.wire.files import write_file
    from moeplan.workflows.attest_bundle import place_attestation

    if (args.path is None) == (args.output is None):
        raise InputError(Issue("--verdict", "usage", "where to?", "either a bundle directory PATH or -o FILE"))
    data = seal(key, verdict_statement(read_document(args.verdict, Verdict)))  # type: ignore[arg-type]
    if args.output is not None:
        write_file(args.output, data)
        return escape(args.output, 400)
    return place_attestation(args.path, "verdict", data)
