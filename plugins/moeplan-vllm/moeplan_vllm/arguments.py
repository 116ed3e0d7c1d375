"""The options of ``vllm serve``, release by release, as data for the manifest toolkit."""

from __future__ import annotations

from functools import cache

from packaging.version import Version

from moeplan.manifests.argument_table import ArgumentTable, parse_argument_table
from moeplan.manifests.versions import VersionRange, parse_range
from moeplan_vllm.data import read_data

__all__ = ["argument_table", "read_releases", "was_read"]


@cache
def argument_table() -> ArgumentTable:
    """Return every option that ``vllm serve`` has in the releases read, with aliases, kinds and version ranges.

    An option without an upper bound is in the newest release read; whether later ones still have it is not known, so
    ask :func:`was_read` before a version is judged.

    Source: vLLM wheels 0.10.2 to 0.33.0, ``engine/arg_utils.py``, ``config/*.py`` and ``cli_args.py``.
    """
    return parse_argument_table(read_data("arguments.json")["arguments"])


@cache
def read_releases() -> VersionRange:
    """Return the range of releases whose options were read."""
    data = read_data("arguments.json")
    return parse_range(f">={data['first']},<={data['last']}")


def was_read(version: Version | None) -> bool:
    """Return whether the table was made from releases up to this version's; False where the version is not known."""
    return read_releases().contains(version) is True
