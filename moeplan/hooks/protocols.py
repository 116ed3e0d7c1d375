"""The hooks as typed protocols: a module or an object with these functions is checked by mypy against them.

Each has the signature of the hook of the same name in :mod:`moeplan.hooks.specs`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from moeplan.model.placement import Placement
from moeplan.model.plan import Plan
from moeplan.model.plugin import LogSignature, OfferedCriterion, PluginFinding, RuntimeInfo
from moeplan.model.preflight import Imported, ImporterInfo, ImportRequest, PreflightCheck
from moeplan.model.rendering import LintRequest, Rendering

__all__ = [
    "PROTOCOLS",
    "Checks",
    "Criteria",
    "Importers",
    "Imports",
    "Lint",
    "LogSignatures",
    "ManifestOwner",
    "Places",
    "Preflight",
    "Renders",
    "RuntimePlugin",
]


class RuntimePlugin(Protocol):
    """What every plugin has: the API major it was written for, and what it is."""

    MOEPLAN_API: int

    def moeplan_runtime(self) -> RuntimeInfo:
        """See :func:`moeplan.hooks.specs.moeplan_runtime`."""
        ...


class Checks(Protocol):
    """A plugin that checks a plan and a site."""

    def moeplan_check(self, plan: Plan, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
        """See :func:`moeplan.hooks.specs.moeplan_check`."""
        ...


class Criteria(Protocol):
    """A plugin that adds criteria to gates."""

    def moeplan_criteria(self, plan: Plan, site: Mapping[str, Any]) -> tuple[OfferedCriterion, ...]:
        """See :func:`moeplan.hooks.specs.moeplan_criteria`."""
        ...


class LogSignatures(Protocol):
    """A plugin that knows what log lines mean."""

    def moeplan_log_signatures(self) -> tuple[LogSignature, ...]:
        """See :func:`moeplan.hooks.specs.moeplan_log_signatures`."""
        ...


class ManifestOwner(Protocol):
    """A plugin that recognises its own manifests."""

    def moeplan_owns_manifest(self, manifest: Mapping[str, Any] | str) -> bool | None:
        """See :func:`moeplan.hooks.specs.moeplan_owns_manifest`."""
        ...


class Lint(Protocol):
    """A plugin that judges manifests and launch scripts."""

    def moeplan_lint(self, request: LintRequest, site: Mapping[str, Any]) -> tuple[PluginFinding, ...]:
        """See :func:`moeplan.hooks.specs.moeplan_lint`."""
        ...


class Places(Protocol):
    """A plugin that knows where tensors and KV cache go."""

    def moeplan_placement(self, plan: Plan, site: Mapping[str, Any]) -> Placement:
        """See :func:`moeplan.hooks.specs.moeplan_placement`."""
        ...


class Renders(Protocol):
    """A plugin that renders the files of a deployment."""

    def moeplan_render(self, plan: Plan, site: Mapping[str, Any]) -> Rendering:
        """See :func:`moeplan.hooks.specs.moeplan_render`."""
        ...


class Preflight(Protocol):
    """A plugin that says what an operator does before a deployment."""

    def moeplan_preflight(self) -> tuple[PreflightCheck, ...]:
        """See :func:`moeplan.hooks.specs.moeplan_preflight`."""
        ...


class Importers(Protocol):
    """A plugin that names the formats it reads."""

    def moeplan_importers(self) -> tuple[ImporterInfo, ...]:
        """See :func:`moeplan.hooks.specs.moeplan_importers`."""
        ...


class Imports(Protocol):
    """A plugin that reads files of its formats."""

    def moeplan_import(self, request: ImportRequest, site: Mapping[str, Any]) -> Imported:
        """See :func:`moeplan.hooks.specs.moeplan_import`."""
        ...


PROTOCOLS: dict[str, type] = {
    "moeplan_runtime": RuntimePlugin,
    "moeplan_check": Checks,
    "moeplan_criteria": Criteria,
    "moeplan_log_signatures": LogSignatures,
    "moeplan_owns_manifest": ManifestOwner,
    "moeplan_lint": Lint,
    "moeplan_placement": Places,
    "moeplan_render": Renders,
    "moeplan_preflight": Preflight,
    "moeplan_importers": Importers,
    "moeplan_import": Imports,
}
"""The protocol of each hook."""
