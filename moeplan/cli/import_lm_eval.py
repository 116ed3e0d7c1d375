"""``moeplan import lm-eval``: a run of lm-evaluation-harness becomes a ``quality_result`` record."""

from __future__ import annotations

import argparse

from moeplan.cli.enclose_option import add_enclose, enclosed
from moeplan.cli.observation_options import add_observation, observation_context, read_given, write_observations

__all__ = ["EXAMPLE", "add_arguments", "run"]

EXAMPLE = (
    "moeplan import lm-eval results.json samples_gsm8k.jsonl --plan plan.json --checkpoint checkpoint.json "
    "--runtime-packages packages.txt -o quality"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the action's options."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="the results file and the samples file of each task, in any order"
    )
    add_observation(parser)
    add_enclose(parser, "tool-output", "tool-summary")


def run(args: argparse.Namespace) -> int:
    """Import the files and write their record."""
    from moeplan.importers.lm_eval import LmEvalFile, import_lm_eval
    from moeplan.importers.tool_json import MAX_TOOL_BYTES

    files = [LmEvalFile(*read_given(path, MAX_TOOL_BYTES)) for path in args.files]
    made, findings = import_lm_eval(files, observation_context(args), enclose=enclosed(args))
    return write_observations(args, [made], findings)
