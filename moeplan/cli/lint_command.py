"""``moeplan lint``: what is wrong in manifests and launch scripts, before a cluster shows it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from moeplan.cli.output import emit_json, emit_text, note
from moeplan.cli.plugins_command import add_plugin
from moeplan.errors import InputError, Issue, escape

__all__ = ["EXAMPLE", "add_arguments", "read_files", "run"]

EXAMPLE = "moeplan lint deploy.yaml --site site.yaml --format github"

_SUFFIXES = (".yaml", ".yml", ".json", ".sh", ".bash")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="manifests (YAML or JSON, many to a file) or launch scripts; a directory with such files; - for stdin",
    )
    parser.add_argument("--site", metavar="FILE", help="what is known of the site, whole or in part")
    parser.add_argument("--runtime", metavar="R", help="the plugin or engine they are for (default: the plugins say)")
    parser.add_argument("--profile", metavar="P", help="the profile they are for (default: the plugin recognises it)")
    add_plugin(parser)
    parser.add_argument(
        "--format", choices=("text", "json", "sarif", "github"), default="text", help="how to print (default: text)"
    )
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    parser.add_argument(
        "--fail-on", choices=("error", "warning"), default="error", help="the mildest finding that exits 1"
    )


def run(args: argparse.Namespace) -> int:
    """Lint and print; 1 for findings, 3 where something could not be judged or nothing was."""
    from moeplan.findings.listed import Listed
    from moeplan.workflows.lint import lint

    site = _site(args.site)
    listed: Listed = lint(
        read_files(args.files), site=site, runtime=args.runtime, profile=args.profile, plugins=args.plugin
    )
    for failure in listed.failures:
        note(f"error: [{failure.code}] {failure}")
    _print(listed, args.format)
    if listed.count("error") or (args.fail_on == "warning" and listed.count("warning")):
        return 1
    unanswered = any(why == "its plugin failed" for _, why in listed.not_judged)
    return 3 if unanswered or not listed.judged else 0


def _site(path: str | None) -> dict[str, object]:
    if path is None:
        return {}
    from moeplan.site.reading import read_partial_site, site_values

    return site_values(read_partial_site(path))


def _print(listed: object, form: str) -> None:
    from moeplan.findings.lines import github_lines, text_lines
    from moeplan.findings.listed import Listed
    from moeplan.findings.sarif import sarif_log

    assert isinstance(listed, Listed)
    if form == "json":
        emit_json(listed.to_json())
    elif form == "sarif":
        emit_json(sarif_log(listed))
    else:
        emit_text("\n".join(github_lines(listed) if form == "github" else text_lines(listed)))


def read_files(paths: list[str]) -> dict[str, bytes]:
    """Return the contents of files by name; a directory stands for the manifests and scripts within."""
    from moeplan.manifests.yaml_positions import MAX_MANIFEST_BYTES
    from moeplan.wire.files import read_file

    files: dict[str, bytes] = {}
    for path in paths:
        if path == "-":
            files["-"] = _stdin(MAX_MANIFEST_BYTES)
            continue
        for name in _within(path):
            files[name] = read_file(name, max_bytes=MAX_MANIFEST_BYTES)
    return files


def _within(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    found = sorted(str(file) for file in Path(path).rglob("*") if file.suffix.lower() in _SUFFIXES and file.is_file())
    if not found:
        shown = escape(path, 400)
        raise InputError(Issue(shown, "no_files", "a directory without manifests", f"files in {', '.join(_SUFFIXES)}"))
    return found


def _stdin(most: int) -> bytes:
    data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise InputError(Issue("-", "too_large", "standard input is too large", f"at most {most} bytes"))
    return data
