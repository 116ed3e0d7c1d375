"""What an author gives the suite: what has to be found, what has to come out byte for byte. Files go by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from moeplan.errors import InputError
from moeplan.manifests.sources import read_source
from moeplan.model.plan import Plan, Scenario
from moeplan.model.rendering import LintRequest, ManifestSource
from moeplan.model.site import Site
from moeplan.wire.converter import unstructure
from moeplan.wire.files import read_file

__all__ = [
    "CheckCase",
    "Golden",
    "LintCase",
    "LintGolden",
    "LogCase",
    "Negative",
    "PlanGiven",
    "RenderGolden",
    "SiteGiven",
    "lint_request",
    "load_plan",
    "load_site_values",
]

PlanGiven = str | Plan | Scenario
"""A plan, the path of one, or a scenario for the registry that moeplan ships."""
SiteGiven = str | Mapping[str, Any]
"""The path of a site, whole or in part, or its JSON values."""


@attrs.frozen
class LintCase:
    """A manifest or launch script in which ``moeplan_lint`` has to find ``id``."""

    id: str
    source: str
    site: SiteGiven = attrs.field(factory=dict)
    profile: str | None = None


@attrs.frozen
class CheckCase:
    """A plan and a site with which ``moeplan_check`` has to find ``id``."""

    id: str
    plan: PlanGiven
    site: SiteGiven = attrs.field(factory=dict)


@attrs.frozen
class LogCase:
    """A log in which a signature of ``id`` has to be found."""

    id: str
    log: str


@attrs.frozen
class LintGolden:
    """All findings of ``moeplan_lint`` in a source, as JSON in the file ``expected``."""

    source: str
    expected: str
    site: SiteGiven = attrs.field(factory=dict)
    profile: str | None = None


@attrs.frozen
class RenderGolden:
    """The files of ``moeplan_render`` as they stand in ``directory``, its guide as ``guide.json`` among them."""

    plan: PlanGiven
    site: SiteGiven
    directory: str


Negative = LintCase | CheckCase | LogCase
Golden = LintGolden | RenderGolden


def lint_request(directory: Path, source: str, profile: str | None) -> LintRequest:
    """Return the request for one source, all of whose objects are the plugin's."""
    read = read_source(source, read_file(directory / source))
    numbers = None if read.documents is None else tuple(range(len(read.documents)))
    return LintRequest((ManifestSource(source, read.text, numbers),), profile)


def load_plan(directory: Path, given: PlanGiven) -> Plan:
    """Return the plan that is given.

    Raises:
        InputError: the file holds none.
    """
    from moeplan.catalogue.registries import load_registry
    from moeplan.planning.builder import plan as make_plan
    from moeplan.wire.documents import load_document

    if isinstance(given, Plan):
        return given
    if isinstance(given, Scenario):
        return make_plan(load_registry(), given)
    return load_document(read_file(directory / given), Plan)


def load_site_values(directory: Path, given: SiteGiven) -> dict[str, Any]:
    """Return the JSON values that plugins get of the site that is given.

    Raises:
        InputError: it is no site.
    """
    from moeplan.site.reading import read_partial_site
    from moeplan.wire.documents import load_value

    if isinstance(given, str):
        values: dict[str, Any] = unstructure(read_partial_site(directory / given))
        return values
    try:
        values = unstructure(load_value({"kind": "site", "schemaVersion": "1.0.0", **given}, Site))
    except InputError as error:
        raise InputError(*(issue.under("site") for issue in error.issues)) from None
    return values
