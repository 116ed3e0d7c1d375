"""The hooks a plugin may implement, as pluggy specifications. ``docs/plugins.md`` shows this module.

A plugin is a module or an object named by an entry point of the group ``moeplan``; the entry point's name is the
plugin's name. It declares ``MOEPLAN_API = 1`` and marks its functions with :data:`hookimpl`. What holds for every hook:
arguments are read-only; a function may leave out arguments it does not use; results are exactly of the declared types
and pass through JSON; the host calls plugins one at a time in the order of their names and no plugin sees another's
answer. A hook that finds plan, site or manifest wrong raises :class:`moeplan.errors.InputRefusedError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pluggy

from moeplan.model.placement import Placement
from moeplan.model.plan import Plan
from moeplan.model.plugin import LogSignature, OfferedCriterion, PluginFinding, RuntimeInfo
from moeplan.model.preflight import Imported, ImporterInfo, ImportRequest, PreflightCheck
from moeplan.model.rendering import LintRequest, Rendering

__all__ = [
    "API_MAJOR",
    "HOOKS",
    "PROJECT",
    "hookimpl",
    "moeplan_check",
    "moeplan_criteria",
    "moeplan_import",
    "moeplan_importers",
    "moeplan_lint",
    "moeplan_log_signatures",
    "moeplan_owns_manifest",
    "moeplan_placement",
    "moeplan_preflight",
    "moeplan_render",
    "moeplan_runtime",
]

PROJECT = "moeplan"
"""pluggy's project name and the entry-point group."""
API_MAJOR = 1
"""The major version of this contract; a plugin declares it as ``MOEPLAN_API`` and another one is refused."""

hookimpl = pluggy.HookimplMarker(PROJECT)
_hookspec = pluggy.HookspecMarker(PROJECT)

HOOKS = (
    "moeplan_runtime",
    "moeplan_check",
    "moeplan_criteria",
    "moeplan_log_signatures",
    "moeplan_owns_manifest",
    "moeplan_lint",
    "moeplan_placement",
    "moeplan_render",
    "moeplan_preflight",
    "moeplan_importers",
    "moeplan_import",
)
"""Every hook, in the order of the documentation."""


@_hookspec
def moeplan_runtime() -> RuntimeInfo:  # type: ignore[empty-body]
    """Say what the plugin is: engine, vendor, name, version, profiles with their status, ids it may report.

    Every plugin implements it. ``plugin`` is the entry point's name and ``version`` that of the distribution.

    Purity: no clock, no network, no file outside the distribution; the same answer each time.
    Ordering: asked first; a plugin that fails here is asked nothing else.
    None: refused.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_check(plan: Plan, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:  # type: ignore[empty-body]
    """Check whether the plan can run as the site is.

    Args:
        plan: the plan, form 1.1.0.
        site: what the site knows, as JSON values: read-only mappings and tuples; empty where there is no site.

    Returns:
        Findings in any order; an id stands among the rules of ``moeplan_runtime``. Nothing found is ``()``.

    Purity: a function of its arguments and the plugin's own facts.
    Ordering: after ``moeplan_runtime``; no other hook need have been called.
    None: refused; "nothing found" and "not looked" are two things.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_criteria(  # type: ignore[empty-body]
    plan: Plan, site: Mapping[str, Any]
) -> tuple[OfferedCriterion, ...]:
    """Offer criteria for the seven gates; they are data and enter a plan under the plugin's name and version.

    Args:
        plan: the plan without any plugin's criteria.
        site: as for ``moeplan_check``.

    Returns:
        Criteria whose ids neither the plan nor another plugin uses. A criterion can only be added, never changed.

    Purity: a function of its arguments and the plugin's own facts.
    Ordering: after ``moeplan_runtime``; no plugin sees what another one offers.
    None: refused; no criteria are ``()``.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_log_signatures() -> tuple[LogSignature, ...]:  # type: ignore[empty-body]
    """Say which log lines mean what; the core does the searching.

    Returns:
        Signatures; each has a literal text or a pattern that compiles, and an id among the rules of
        ``moeplan_runtime``.

    Purity: the same answer each time.
    Ordering: after ``moeplan_runtime``.
    None: refused; no signatures are ``()``.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_owns_manifest(manifest: Mapping[str, Any] | str) -> bool | None:
    """Say whether a manifest or launch script is for this plugin's runtime.

    Args:
        manifest: one YAML document as read-only mappings and tuples, or the text of a launch script.

    Returns:
        True: it is; False: it is not.

    Purity: a function of its argument.
    Ordering: after ``moeplan_runtime``.
    None: the plugin cannot tell; a plugin without this hook never can.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_lint(  # type: ignore[empty-body]
    request: LintRequest, site: Mapping[str, Any]
) -> tuple[PluginFinding, ...]:
    """Find what is wrong in manifests and launch scripts.

    Args:
        request: sources that are judged together, each with the numbers of the objects that are the plugin's own.
        site: as for ``moeplan_check``; often a part of one.

    Returns:
        Findings in any order; each names one of the sources as its ``file``, a line of it where there is one, and an
        id that stands among the rules of ``moeplan_runtime``. Nothing found is ``()``.

    Purity: a function of its arguments and the plugin's own facts.
    Ordering: after ``moeplan_runtime`` and, where the plugin has it, ``moeplan_owns_manifest``.
    None: refused; "nothing found" and "not looked" are two things.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_placement(plan: Plan, site: Mapping[str, Any]) -> Placement:  # type: ignore[empty-body]
    """Say where the plan puts tensors and KV cache, in bytes a rank.

    Args:
        plan: the plan, form 1.1.0.
        site: as for ``moeplan_check``.

    Returns:
        Figures for each role; one that is not known says so.

    Purity: a function of its arguments and the plugin's own facts.
    Ordering: after ``moeplan_runtime``; no other hook need have been called.
    None: refused; a figure that is not known is ``unknown`` with its reason.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_render(plan: Plan, site: Mapping[str, Any]) -> Rendering:  # type: ignore[empty-body]
    """Render the files that deploy the plan on the site, and the operator's guide.

    Args:
        plan: the plan, form 1.1.0.
        site: as for ``moeplan_check``; it names runtime and profile.

    Returns:
        Files with plain names, each once, in the order in which they are applied. No placeholder is in them: where the
        site lacks a value, the plugin raises ``InputRefusedError`` naming the key.

    Purity: a function of its arguments and the plugin's own facts; the same bytes each time.
    Ordering: after ``moeplan_runtime``; no other hook need have been called.
    None: refused; what cannot be rendered is an ``InputRefusedError``.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_preflight() -> tuple[PreflightCheck, ...]:  # type: ignore[empty-body]
    """Say what an operator does before a deployment, and what shows that it is in order.

    Returns:
        Checks in the order in which they are done; each id once, and profiles that are the plugin's own.

    Purity: the same answer each time.
    Ordering: after ``moeplan_runtime``.
    None: refused; no checks are ``()``.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_importers() -> tuple[ImporterInfo, ...]:  # type: ignore[empty-body]
    """Say which tools' files the plugin reads.

    Returns:
        Formats, each with its origin: plugins that build on one library share a format, and one format of two origins
        is a collision.

    Purity: the same answer each time.
    Ordering: after ``moeplan_runtime``.
    None: refused; no formats are ``()``.
    Since: 0.1.0, API 1.
    """


@_hookspec
def moeplan_import(request: ImportRequest, site: Mapping[str, Any]) -> Imported:  # type: ignore[empty-body]
    """Read files of one of the plugin's formats: raw values as rows, what is wrong, and hosts side by side.

    Args:
        request: the format and the whole text of each file; one file a host.
        site: as for ``moeplan_check``.

    Returns:
        Rows for the core's table, which the core writes, the tool's own figures as claims, findings whose ``file`` is
        the name of one of the files, and comparisons. Files that are not of the format are an ``InputRefusedError``
        whose paths begin with the file's name.

    Purity: a function of its arguments and the plugin's own facts; the files' levels and sums are claims.
    Ordering: after ``moeplan_importers``; no other hook need have been called.
    None: refused; what cannot be read is an ``InputRefusedError``.
    Since: 0.1.0, API 1.
    """
