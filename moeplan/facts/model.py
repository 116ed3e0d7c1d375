"""A fact: what must hold, where, what happens otherwise, who says so. Facts are data files in plugins and libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.facts.conditions import Condition, parse_condition
from moeplan.model.fields import camel, choice, nested, sequence, text
from moeplan.model.plugin import FINDING_PATTERN, FactSource, FindingRule, LogSignature, ValidFor

__all__ = ["BASES", "EACH", "Fact", "FactLog", "FactSet", "FactStatement", "load_facts"]

BASES = ("documented", "derived-from-source", "inferred", "reported")
"""What a fact rests on: a statement of the makers, their code, a consequence of other rules, a public report."""
EACH = ("engine", "router", "sidecar", "program", "pod", "document", "group")
"""What a fact is held against: each launch of that kind, each pod, each document, or each group of them."""
KINDS = ("lint", "compat", "preflight", "procedure", "timing", "log", "smoke", "policy", "generator")


@attrs.frozen(kw_only=True)
class FactLog:
    """How a log shows it. Several literals must all stand in the line; ``cause`` of None is the consequence."""

    literals: tuple[str, ...] = text(many=True, max_length=400, default=())
    pattern: str | None = text(max_length=1024, optional=True, default=None)
    expectation: str = choice("must_be_zero", "must_be_present", "informs")
    severity: str | None = choice("info", "warning", "error", optional=True, default=None)
    cause: str | None = text(optional=True, default=None)


@attrs.frozen(kw_only=True)
class FactStatement:
    """What a fact says, without the conditions that a machine holds against manifests.

    ``profiles`` are patterns (``opt/*``) of the profiles it holds for; none: all. ``at`` is the field whose place in
    the file is shown, by default the first of ``violated``. ``message`` may hold ``{field}``, and ``{at}`` for the
    field that shows the fault with its value; None is the title.
    """

    id: str = text(pattern=FINDING_PATTERN, max_length=64)
    title: str = text(max_length=300)
    kind: str = choice(*KINDS)
    severity: str = choice("info", "warning", "error")
    silent: str = choice("no", "partly", "yes")
    basis: str = choice(*BASES)
    profiles: tuple[str, ...] = text(many=True, max_length=129, default=())
    each: str = choice(*EACH, default="engine")
    at: str | None = text(max_length=400, optional=True, default=None)
    message: str | None = text(optional=True, default=None)
    consequence: str = text()
    remedy: str = text()
    sources: tuple[FactSource, ...] = sequence(FactSource, min_items=1)
    valid_for: ValidFor | None = nested(ValidFor, optional=True, default=None)
    logs: tuple[FactLog, ...] = sequence(FactLog, default=())


@attrs.frozen(kw_only=True)
class Fact(FactStatement):
    """One fact. ``when`` says where it applies and ``violated`` what breaks it (:mod:`moeplan.facts.conditions`).

    A fact without ``violated`` is judged by a plugin's code, shows in logs only, or is for people.
    """

    when: Condition | None = attrs.field(default=None)
    violated: Condition | None = attrs.field(default=None)


_NESTED: dict[tuple[type, str], type] = {
    (FactStatement, "sources"): FactSource,
    (FactStatement, "validFor"): ValidFor,
    (FactStatement, "logs"): FactLog,
}


@attrs.frozen
class FactSet:
    """The facts of one distribution, or of several joined."""

    origin: str
    facts: tuple[Fact, ...]
    _by_id: Mapping[str, Fact] = attrs.field(init=False, repr=False, eq=False)
    _origins: Mapping[str, str] = attrs.field(factory=dict, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {fact.id: fact for fact in self.facts})

    def __getitem__(self, fact_id: str) -> Fact:
        return self._by_id[fact_id]

    def joined(self, *others: FactSet) -> FactSet:
        """Return the facts of all sets, each with its own origin.

        Raises:
            InputError: an id stands in two sets.
        """
        origins = {fact.id: self.origin_of(fact.id) for fact in self.facts}
        facts = list(self.facts)
        for other in others:
            for fact in other.facts:
                if fact.id in origins:
                    raise InputError(Issue(fact.id, "duplicate_id", "fact in two sets", "each id once", other.origin))
                origins[fact.id] = other.origin_of(fact.id)
                facts.append(fact)
        return FactSet(self.origin, tuple(facts), origins)

    def origin_of(self, fact_id: str) -> str:
        """Return the distribution that defines a fact."""
        return self._origins.get(fact_id, self.origin)

    def rules(self) -> tuple[FindingRule, ...]:
        """Return every id with its origin, as ``RuntimeInfo.rules`` wants them."""
        return tuple(FindingRule(fact.id, self.origin_of(fact.id)) for fact in self.facts)

    def log_signatures(self) -> tuple[LogSignature, ...]:
        """Return what log lines mean, as the hook ``moeplan_log_signatures`` returns it."""
        return tuple(_signature(fact, log) for fact in self.facts for log in fact.logs)


def _signature(fact: Fact, log: FactLog) -> LogSignature:
    return LogSignature(
        id=fact.id,
        severity=log.severity or fact.severity,
        literals=log.literals,
        pattern=log.pattern,
        expectation=log.expectation,
        cause=log.cause or fact.consequence,
        remedy=fact.remedy,
        sources=fact.sources,
        valid_for=fact.valid_for,
    )


def load_facts(data: bytes, origin: str) -> FactSet:
    """Return the facts in ``data``: a JSON array of objects with the keys of :class:`Fact` in camelCase.

    Args:
        data: the bytes of the data file.
        origin: the distribution it belongs to.

    Raises:
        InputError: every fault of the first malformed fact, or ids given twice; the path names the fact.
    """
    from moeplan.wire.strict_json import parse_strict

    rows = parse_strict(data)
    if not isinstance(rows, list):
        raise InputError(Issue("$", "wrong_type", "no list of facts", "a JSON array", type(rows).__name__))
    facts = tuple(_fact(row, f"$[{number}]") for number, row in enumerate(rows))
    seen: set[str] = set()
    for fact in facts:
        if fact.id in seen:
            raise InputError(Issue(fact.id, "duplicate_id", "fact given twice", "each id once"))
        seen.add(fact.id)
    return FactSet(origin, facts)


def _fact(row: Any, path: str) -> Fact:
    from moeplan.wire.converter import structure

    if not isinstance(row, dict):
        raise InputError(Issue(path, "wrong_type", "not a fact", "an object", type(row).__name__))
    name = row["id"] if isinstance(row.get("id"), str) else path
    try:
        conditions = {
            key: parse_condition(row[key], f"{name}.{key}") for key in ("when", "violated") if row.get(key) is not None
        }
        plain = {key: value for key, value in row.items() if key not in ("when", "violated")}
        statement = structure(_completed(plain, FactStatement), FactStatement)
    except InputError as error:
        raise InputError(*(_within(issue, name) for issue in error.issues)) from None
    values = {field.name: getattr(statement, field.name) for field in attrs.fields(FactStatement)}
    return Fact(**values, when=conditions.get("when"), violated=conditions.get("violated"))


def _completed(row: Any, cls: type) -> Any:
    """Return an authored object with the defaults of the keys that it leaves out."""
    if not isinstance(row, dict):
        return row
    made = dict(row)
    for field in attrs.fields(cls):
        key = camel(field.name)
        below = _NESTED.get((cls, key))
        if key not in made:
            if field.default is not attrs.NOTHING:
                made[key] = list(field.default) if isinstance(field.default, tuple) else field.default
        elif below is not None:
            value = made[key]
            made[key] = [_completed(v, below) for v in value] if isinstance(value, list) else _completed(value, below)
    return made


def _within(issue: Issue, name: str) -> Issue:
    path = issue.path if issue.path.startswith(name) else f"{name}{issue.path.removeprefix('$')}"
    return attrs.evolve(issue, path=path)
