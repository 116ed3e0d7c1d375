"""The command line: parse, call, print, exit code. One module a command, imported only when it is called."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

from moeplan.errors import InputError, Issue, MoeplanError, StoreError, VerificationError, escape

__all__ = [
    "COMMANDS",
    "EXIT_FAULT",
    "EXIT_INCONCLUSIVE",
    "EXIT_INPUT",
    "EXIT_INTERNAL",
    "EXIT_INTERRUPTED",
    "EXIT_NOT_READY",
    "EXIT_OK",
    "main",
    "run",
]

EXIT_OK = 0
EXIT_NOT_READY = 1
EXIT_INPUT = 2
EXIT_INCONCLUSIVE = 3
EXIT_FAULT = 4
EXIT_INTERNAL = 70
"""sysexits.h EX_SOFTWARE."""
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141
"""128 + the signal's number (SIGINT, SIGPIPE), as shells report it. Never 0: nobody may take it for a pass."""

COMMANDS = {
    "plan": "calculate a deployment plan, or one a line with --batch",
    "fit": "show the static memory floor of a model on an accelerator",
    "models": "list the registry's models",
    "model": "show one model with its sourced claims",
    "hardware": "list the registry's accelerators, or show one",
    "registry": "validate a registry file",
    "plugins": "list the installed plugins, and name those that fail",
    "profiles": "list the profiles of the installed plugins with what is known of each",
    "site": "begin a site file, probe nodes, merge what was found, validate",
    "check": "check whether a plan fits a site",
    "render": "write the manifests that deploy a plan on a site, with a guide for the operator",
    "lint": "find what is wrong in manifests and launch scripts",
    "diagnose": "say what is known of the lines of a log",
    "preflight": "judge what a preflight tool says of the hosts, from its raw values",
    "compare": "set two plans, or two verdicts, side by side",
    "checkpoint": "digest a checkpoint directory, or verify one against its manifest",
    "collect": "observe a live system and write evidence records",
    "import": "turn a tool's output into evidence records",
    "status": "say what a plan's evidence has, what it lacks and what gets it",
    "bundle": "create, pack or unpack an evidence bundle",
    "attest": "sign the records and the index of a bundle, or a verdict",
    "policy": "write, validate or explain an auditor's policy",
    "verify": "verify a bundle's signatures, inventory and records",
    "verdict": "verify a bundle and judge its evidence",
    "audit": "verify, judge, and reproduce the signed verdict byte for byte",
}


class _Parser(argparse.ArgumentParser):
    """A parser that raises instead of exiting, so that ``--json`` errors have one shape."""

    def _print_message(self, message: str, file: object = None) -> None:
        from moeplan.cli.output import emit_bytes

        emit_bytes(message.encode("utf-8"))

    def error(self, message: str) -> NoReturn:
        raise InputError(Issue("command line", "usage", escape(message, 400), next=f"see '{self.prog} --help'"))


def _top_help() -> str:
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name.ljust(width)}  {text}" for name, text in COMMANDS.items())
    return (
        "usage: moeplan COMMAND …\n\n"
        "May this mixture-of-experts checkpoint serve this workload on this hardware with this runtime?\n\n"
        f"commands:\n{listed}\n\n"
        "Each command has --help with an example, and --json.\n\n"
        "example:\n  moeplan plan kimi-k3 h200 --devices 8"
    )


def _dispatch(argv: Sequence[str]) -> int:
    from moeplan.cli.output import emit_text

    if not argv or argv[0] in ("-h", "--help", "help"):
        emit_text(_top_help())
        return EXIT_OK if argv else EXIT_INPUT
    if argv[0] == "--version":
        from moeplan.version import VERSION

        emit_text(f"moeplan {VERSION}")
        return EXIT_OK
    name = argv[0]
    if name not in COMMANDS:
        from difflib import get_close_matches

        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean '{near[0]}'?" if near else "see 'moeplan --help'"
        raise InputError(Issue("command line", "unknown_command", f"no command {escape(name, 60)!r}", next=hint))
    module = import_module(f"moeplan.cli.{name}_command")
    parser = _Parser(
        prog=f"moeplan {name}",
        description=COMMANDS[name][0].upper() + COMMANDS[name][1:] + ".",
        epilog=f"example:\n  {module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    if hasattr(module, "add_called"):  # what only a plugin knows, looked for where it is called
        module.add_called(parser, argv[1:])
    args = parser.parse_args(argv[1:])
    code: int = module.run(args)
    return code


def _report(error: MoeplanError, as_json: bool) -> int:
    from moeplan.cli.output import note_error

    _say(error.to_json(), as_json)
    note_error(error)
    return EXIT_FAULT if isinstance(error, VerificationError) else EXIT_INPUT


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; never raises but for SystemExit of ``--help``."""
    from moeplan.cli.output import note, silence

    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words
    try:
        return _dispatch(words)
    except MoeplanError as error:
        return _report(error, as_json)
    except KeyboardInterrupt:
        note("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        silence()
        return EXIT_BROKEN_PIPE
    except OSError as error:  # what a file does that no command thought of is no defect, and not a verdict either
        from moeplan.wire.files import store_error

        return _report(store_error(error.filename or "file", error, "read"), as_json)
    except Exception as error:
        return _internal(error, as_json)


def _internal(error: Exception, as_json: bool) -> int:
    from traceback import extract_tb

    from moeplan.cli.output import note

    frame = extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    text = f"internal error: {type(error).__name__} at {place}: {escape(str(error))}"
    issue = Issue("moeplan", "internal_error", text, next="this is a defect of moeplan; report it with the command")
    _say({"error": issue.to_json()}, as_json)
    note(f"error: {issue}")
    return EXIT_INTERNAL


def _say(error: dict[str, Any], as_json: bool) -> None:
    """Print an error as JSON where that is asked for; a stdout that cannot take it changes no exit code."""
    from moeplan.cli.output import emit_json, silence

    if as_json:
        try:
            emit_json(error)
        except StoreError:
            pass
        except BrokenPipeError:
            silence()


def run() -> NoReturn:
    """Console-script entry point."""
    sys.exit(main())


if __name__ == "__main__":
    run()
