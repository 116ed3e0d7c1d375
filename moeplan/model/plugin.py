"""What plugins and the core tell each other: frozen, plain data, each statement with its sources."""

from __future__ import annotations

import attrs

from moeplan.model.deployment import PROFILE_PATTERN
from moeplan.model.fields import (
    PLUGIN_PATTERN,
    VERSION_PATTERN,
    boolean,
    choice,
    digest,
    identifier,
    integer,
    limit_value,
    nested,
    sequence,
    text,
)
from moeplan.model.node_roles import NODE_ROLES
from moeplan.model.plan import BINDINGS, GATE_IDS, RUNTIME_PATTERN, Criterion

__all__ = [
    "AIMS",
    "FAILURE_CODES",
    "FINDING_PATTERN",
    "PLUGIN_PATTERN",
    "PROFILE_PATTERN",
    "PROFILE_STATUSES",
    "SITE_KEY_PATTERN",
    "VERSION_PATTERN",
    "FactSource",
    "FindingRule",
    "GateCriterion",
    "InputFault",
    "LogSignature",
    "OfferedCriterion",
    "PluginFailure",
    "PluginFinding",
    "Profile",
    "ProfileAim",
    "RuntimeInfo",
    "SiteNeed",
    "ValidFor",
]

FINDING_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
SITE_KEY_PATTERN = r"^[a-z][A-Za-z0-9]*(\[\])?(\.[A-Za-z0-9][A-Za-z0-9_-]*)*$"
"""A key of the site document as a path: ``namespace``, ``images.engine``, ``nodes[].modelDirectory``."""
PROFILE_STATUSES = ("measured", "recipe_only", "calculated", "reported_failing")
"""How much is known of a profile, strongest first; the last is known not to work."""

AIMS = ("tokens_per_accelerator", "low_concurrency", "high_concurrency", "headroom", "lowest_latency", "one_node")
"""What a deployment is chosen for. ``low_concurrency`` and ``high_concurrency`` mean latency there; ``headroom`` is
capacity beyond one node; ``one_node`` the least hardware."""

FAILURE_CODES = (
    "api_mismatch",
    "colliding_id",
    "died",
    "duplicate_name",
    "false_name",
    "false_place",
    "import_failed",
    "input_changed",
    "input_refused",
    "invalid_name",
    "invalid_pattern",
    "malformed_result",
    "missing_hook",
    "misspelt_hook",
    "none_returned",
    "raised",
    "timed_out",
    "too_large",
    "undeclared_id",
    "unreadable_metadata",
    "wrong_signature",
    "wrong_type",
)
"""Every way in which a plugin fails; other programs may match on these words."""


@attrs.frozen
class FactSource:
    """Where a statement comes from: a document, a file at a revision or an issue, and the place in it."""

    source: str = text(max_length=1024)
    locator: str | None = text(max_length=1024, optional=True, default=None)


@attrs.frozen
class ValidFor:
    """What a finding holds for: engine versions (a PEP 440 specifier; None: not bound to them) and image digests."""

    engine_versions: str | None = text(max_length=200, optional=True, default=None)
    images: tuple[str, ...] = digest(many=True, default=())


@attrs.frozen(kw_only=True)
class SiteNeed:
    """A value that only the site knows and a profile needs; ``moeplan site init`` asks for it.

    Attributes:
        key: where it stands in the site document (``nodes[].modelDirectory``).
        title: what it is, in a phrase.
        how: how to find it: a command, or whom to ask.
        example: a value as it may look; shown in a comment, never used.
        default: the value to begin with; None where there is none and the person has to fill it in.
        roles: of ``nodes[]…``: the roles of the nodes that need it; empty means every node.
        required: False for what the profile can do without; it is written as a comment.
    """

    key: str = text(pattern=SITE_KEY_PATTERN, max_length=128)
    title: str = text(max_length=400)
    how: str = text(max_length=1024)
    example: str | None = text(max_length=400, optional=True, default=None)
    default: str | None = text(max_length=400, optional=True, default=None)
    roles: tuple[str, ...] = choice(*NODE_ROLES, many=True, default=())
    required: bool = boolean(default=True)


@attrs.frozen(kw_only=True)
class ProfileAim:
    """What is known of a profile and one aim: whether it suits it, and why; ``open``: only a measurement tells."""

    aim: str = choice(*AIMS)
    suits: str = choice("yes", "no", "open")
    statement: str = text()
    sources: tuple[FactSource, ...] = sequence(FactSource, min_items=1)


@attrs.frozen
class Profile:
    """One way of running the engine, and how much is known of it.

    ``status`` is a claim that the sources carry. ``site_needs`` are the values that only the site knows. ``nodes`` and
    ``accelerators`` are what it runs on, ``speculation`` whether it needs a draft; None where that is open. ``models``
    are the registry's ids it is for; none: any.
    """

    id: str = text(pattern=PROFILE_PATTERN, max_length=129)
    title: str = text(max_length=200)
    status: str = choice(*PROFILE_STATUSES)
    statement: str = text()
    sources: tuple[FactSource, ...] = sequence(FactSource, min_items=1)
    site_needs: tuple[SiteNeed, ...] = sequence(SiteNeed, default=())
    nodes: int | None = integer(ge=1, optional=True, default=None)
    accelerators: int | None = integer(ge=1, optional=True, default=None)
    speculation: str | None = choice("yes", "no", optional=True, default=None)
    models: tuple[str, ...] = identifier(many=True, default=())
    aims: tuple[ProfileAim, ...] = sequence(ProfileAim, default=())


@attrs.frozen
class FindingRule:
    """An id that a plugin's findings and log signatures may bear.

    ``origin`` names the distribution that defines it: the plugin's own, or a library that several plugins share. One
    id of two origins is a collision.
    """

    id: str = text(pattern=FINDING_PATTERN, max_length=64)
    origin: str = text(pattern=PLUGIN_PATTERN, max_length=64)


@attrs.frozen
class RuntimeInfo:
    """What a plugin is: engine, vendor, its own name and version, its profiles and every id it may report."""

    engine: str = text(pattern=RUNTIME_PATTERN, max_length=64)
    vendor: str = text(pattern=RUNTIME_PATTERN, max_length=64)
    plugin: str = text(pattern=PLUGIN_PATTERN, max_length=64)
    version: str = text(pattern=VERSION_PATTERN, max_length=63)
    profiles: tuple[Profile, ...] = sequence(Profile)
    rules: tuple[FindingRule, ...] = sequence(FindingRule)


@attrs.frozen(kw_only=True)
class PluginFinding:
    """One thing a plugin found in a plan, a site or a manifest.

    ``path`` is a JSON path in the plan, the site or the manifest; ``file`` says in which: ``plan``, ``site``, or the
    name of a source that was linted. Lines and columns count from 1 and are there for manifests and scripts.
    ``consequence`` is what happens if it is ignored and ``silent`` whether that happens without a word in any log.
    ``plugin`` may be left out: the host fills it in, and refuses another plugin's name. ``valid_for`` of None is not
    bound to a version.
    """

    id: str = text(pattern=FINDING_PATTERN, max_length=64)
    plugin: str | None = text(pattern=PLUGIN_PATTERN, max_length=64, optional=True, default=None)
    severity: str = choice("info", "warning", "error")
    path: str = text(max_length=4096)
    file: str | None = text(max_length=4096, optional=True, default=None)
    line: int | None = integer(ge=1, optional=True, default=None)
    column: int | None = integer(ge=1, optional=True, default=None)
    message: str = text()
    consequence: str = text()
    silent: str = choice("no", "partly", "yes")
    remedy: str = text()
    sources: tuple[FactSource, ...] = sequence(FactSource, min_items=1)
    valid_for: ValidFor | None = nested(ValidFor, optional=True, default=None)


@attrs.frozen(kw_only=True)
class OfferedCriterion:
    """A criterion a plugin wants in one of the seven gates; fields as in ``Criterion``. The host signs the name."""

    gate: str = choice(*GATE_IDS)
    id: str = identifier()
    metric: str = identifier()
    aggregation: str = choice("exact", "each_trial", "p95_each_trial", "sum", "all_records")
    comparator: str = choice("le", "ge", "eq")
    limit: int | str | None = limit_value()
    unit: str = identifier()
    evidence_types: tuple[str, ...] = identifier(many=True)
    min_binding: str = choice(*BINDINGS)
    clause: str = identifier()

    def contributed(self, plugin: str, version: str) -> GateCriterion:
        """Return it as a criterion under the plugin's name and version; what is missing stays inconclusive."""
        values = {field.name: getattr(self, field.name) for field in attrs.fields(OfferedCriterion)}
        gate = values.pop("gate")
        made = Criterion(**values, on_missing="inconclusive", contributed_by=f"{plugin}@{version}", samples=None)
        return GateCriterion(gate, made)


@attrs.frozen
class GateCriterion:
    """A criterion with the gate it is for."""

    gate: str = choice(*GATE_IDS)
    criterion: Criterion = nested(Criterion)


@attrs.frozen(kw_only=True)
class LogSignature:
    """What a log line says about a run.

    A line bears the signature when it holds every text of ``literals`` and, where there is one, ``pattern`` (a Python
    regular expression) is found in it. ``expectation`` says what its absence or presence means.
    """

    id: str = text(pattern=FINDING_PATTERN, max_length=64)
    severity: str = choice("info", "warning", "error")
    literals: tuple[str, ...] = text(many=True, max_length=400)
    pattern: str | None = text(max_length=1024, optional=True, default=None)
    expectation: str = choice("must_be_zero", "must_be_present", "informs")
    cause: str = text()
    remedy: str = text()
    sources: tuple[FactSource, ...] = sequence(FactSource, min_items=1)
    valid_for: ValidFor | None = nested(ValidFor, optional=True, default=None)


@attrs.frozen
class InputFault:
    """One thing that a plugin finds wrong in its input; fields as in ``Issue``."""

    path: str = text(max_length=1024)
    code: str = text(max_length=1024)
    message: str = text(max_length=1024)
    expected: str | None = text(max_length=1024, optional=True)
    got: str | None = text(max_length=1024, optional=True)
    next: str | None = text(max_length=1024, optional=True)


@attrs.frozen
class PluginFailure:
    """A plugin that could not be used or asked: which, at which hook (``load`` before any), why; the rest went on.

    ``issues`` says what is wrong in the input where the plugin refused it (``input_refused``): the site lacks a value,
    the plan wants what the runtime does not have.
    """

    plugin: str = text(max_length=200)
    version: str | None = text(max_length=200, optional=True)
    hook: str = text(max_length=64)
    code: str = choice(*FAILURE_CODES)
    message: str = text(max_length=1024)
    issues: tuple[InputFault, ...] = sequence(InputFault, default=())

    def __str__(self) -> str:
        shown = self.plugin if self.version is None else f"{self.plugin} {self.version}"
        return f"plugin {shown}: {self.hook}: {self.message}"
