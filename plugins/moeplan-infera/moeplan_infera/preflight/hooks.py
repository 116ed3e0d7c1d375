"""What a plugin re-exports: the formats it reads, the reading, and what an operator runs before a deployment.

A plugin writes::

    from moeplan_infera.preflight import hooks as preflight

    @hookimpl
    def moeplan_importers() -> tuple[ImporterInfo, ...]:
        return preflight.importers()

    @hookimpl
    def moeplan_import(request: ImportRequest, site: Mapping[str, Any]) -> Imported:
        return preflight.import_files(request, site)

    @hookimpl
    def moeplan_preflight() -> tuple[PreflightCheck, ...]:
        return preflight.checks(PROFILES)

and adds ``preflight.rules()`` to the rules of ``moeplan_runtime``, which has ``SHARED_IDS`` among its facts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

import attrs

from moeplan.errors import InputRefusedError, Issue
from moeplan.model.plugin import FindingRule
from moeplan.model.preflight import Imported, ImporterInfo, ImportRequest, PreflightCheck

__all__ = ["FORMAT", "checks", "import_files", "importers", "rules"]

FORMAT = "infera-preflight"


def importers() -> tuple[ImporterInfo, ...]:
    """Return the one format: a host's JSON of ``python -m infera.tools.preflight``."""
    return (ImporterInfo(FORMAT, "moeplan-infera", "Infera's preflight, one <host>.json a host", "preflight"),)


def import_files(request: ImportRequest, site: Mapping[str, Any]) -> Imported:
    """Return what the hosts' files say, judged again from their raw values.

    Raises:
        InputRefusedError: another format, or files that are not of this one.
    """
    from moeplan_infera.preflight.reading import read_files

    if request.format != FORMAT:
        raise InputRefusedError(
            Issue("format", "unknown_format", "not a format of this plugin", FORMAT, request.format)
        )
    return read_files(request, site)


def rules() -> tuple[FindingRule, ...]:
    """Return the ids that the preflight alone defines, for ``RuntimeInfo.rules``.

    Its findings also bear the ids of :data:`moeplan_infera.preflight.rules.SHARED_IDS`, which a plugin declares with
    its other facts. The facts behind the ids here are :func:`moeplan_infera.preflight.rules.preflight_facts`.
    """
    from moeplan_infera.preflight.rules import ORIGIN, own_ids

    return tuple(FindingRule(name, ORIGIN) for name in own_ids())


def checks(profiles: Collection[str]) -> tuple[PreflightCheck, ...]:
    """Return what an operator does before deploying one of these profiles, in the order in which it is done.

    Args:
        profiles: ids of the plugin's profiles; what is for other profiles alone is left out.
    """
    found = []
    for check in _checks():
        known = tuple(one for one in check.profiles if one in profiles)
        if known or not check.profiles:
            found.append(attrs.evolve(check, profiles=known))
    return tuple(found)


@cache
def _checks() -> tuple[PreflightCheck, ...]:
    import json
    from importlib.resources import files

    from moeplan.model.plugin import FactSource

    data = json.loads(files("moeplan_infera.preflight").joinpath("checks.json").read_bytes())
    return tuple(
        PreflightCheck(
            id=row["id"],
            title=row["title"],
            commands=tuple(row["commands"]),
            how=row["how"],
            proof=row["proof"],
            deadline_seconds=row["deadlineSeconds"],
            profiles=tuple(row["profiles"]),
            sources=tuple(FactSource(one["source"], one["locator"]) for one in row["sources"]),
        )
        for row in data
    )
