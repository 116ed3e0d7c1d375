"""Holds facts against a scene: each violated fact becomes a finding at the place that shows it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

import attrs

from moeplan.errors import InputError, escape
from moeplan.facts.conditions import Condition, evaluate_condition, fields_of
from moeplan.facts.fields import Field, parse_field
from moeplan.facts.launches import Scene, Subject
from moeplan.facts.model import Fact, FactSet
from moeplan.facts.values import Place
from moeplan.manifests.versions import parse_range, parse_version
from moeplan.model.plugin import PluginFinding

__all__ = ["Hit", "Rule", "applies_to", "finding_of", "judge"]

_REFERENCE = re.compile(r"\{([a-z-]+ [^{}]+)\}")


@attrs.frozen
class Hit:
    """A place where a fact is broken.

    Attributes:
        place: where.
        message: what is wrong there; None takes the fact's.
        subject: what it was held against, for the engine's version and the message's fields.
        severity: another severity than the fact's, where the case is less sure.
    """

    place: Place
    message: str | None = None
    subject: Subject | None = None
    severity: str | None = None


Rule = Callable[[Scene], Iterable[Hit]]
"""Code that judges what data cannot say; registered under the id of its fact."""


def judge(scene: Scene, facts: FactSet, rules: Mapping[str, Rule] | None = None) -> tuple[PluginFinding, ...]:
    """Return the findings of all facts that hold for the scene's profile, in the order of the files.

    A fact whose engine versions do not hold the launch's is left out; where the version is not known the finding is an
    ``info`` that says so.
    """
    found = []
    for fact in facts.facts:
        if applies_to(fact, scene.profile):
            hits = list(_hits(fact, scene))
            rule = (rules or {}).get(fact.id)
            hits += list(rule(scene)) if rule is not None else []
            found += [made for hit in hits if (made := finding_of(fact, hit)) is not None]
    return tuple(sorted(dict.fromkeys(found), key=_order))


def _order(finding: PluginFinding) -> tuple[str, int, int, str]:
    return finding.file or "", finding.line or 0, finding.column or 0, finding.id


def applies_to(fact: Fact, profile: str | None) -> bool:
    """Return whether a fact holds for a profile; one of named profiles does not where the profile is not known."""
    if not fact.profiles:
        return True
    return profile is not None and any(fnmatchcase(profile, pattern) for pattern in fact.profiles)


def _hits(fact: Fact, scene: Scene) -> Iterator[Hit]:
    if fact.violated is None:
        return
    for subject in _subjects(fact.each, scene):
        if fact.when is not None and evaluate_condition(fact.when, subject) is not True:
            continue
        if evaluate_condition(fact.violated, subject) is True:
            at = parse_field(fact.at) if fact.at is not None else _at(fact.violated, subject)
            shown = _shown_by(subject, fact, at) if fact.each == "group" else subject
            place = None if at is None else shown.look(at).place
            message = None if at is None or fact.message is None else fact.message.replace("{at}", _told(at, shown))
            yield Hit(place or shown.place(), message, shown)


def _told(field: Field, subject: Subject) -> str:
    """Return a field and its value as a message gives them: ``--max-num-seqs is 64``."""
    return f"{str(field).partition(' ')[2]} is {subject.look(field).shown()}"


_BESIDE = frozenset(("launch", "site", "model", "derived", "document"))
"""Spaces of fields that say where a test applies rather than what is wrong there."""


def _at(violated: Condition, subject: Subject) -> Field | None:
    """Return the field that shows a fault: of the first tests that hold, one that is a place in the manifest."""
    fields = list(_holding(violated, subject))
    return next((field for field in fields if field.space not in _BESIDE), next(iter(fields), None))


def _holding(condition: Condition, subject: Subject) -> Iterator[Field]:
    if condition.kind == "any":
        held = next((part for part in condition.parts if evaluate_condition(part, subject) is True), None)
        yield from fields_of(condition) if held is None else _holding(held, subject)
    elif condition.kind == "all":
        for part in condition.parts:
            yield from _holding(part, subject)
    else:
        yield from fields_of(condition)


def _shown_by(group: Subject, fact: Fact, at: Field | None) -> Subject:
    """Return the engine of a group that shows a fault: one that lacks the field, or else the last."""
    among = [part for part in _parts(fact.violated) if part.kind in ("differs", "some")]
    chosen = [part.parts[0] for part in among if part.parts]
    engines = [one for one in group.engines() if not chosen or any(evaluate_condition(c, one) is True for c in chosen)]
    if not engines:
        return group
    lacking = [one for one in engines if at is not None and one.look(at).state == "absent"]
    return lacking[-1] if lacking and len(lacking) < len(engines) else engines[-1]


def _parts(condition: Condition | None) -> Iterator[Condition]:
    if condition is not None:
        yield condition
        for part in condition.parts:
            yield from _parts(part)


def _subjects(each: str, scene: Scene) -> Iterable[Subject]:
    if each == "program":
        return scene.launches
    if each == "pod":
        return scene.pods
    if each == "document":
        return scene.documents
    if each == "group":
        return scene.groups()
    return [launch for launch in scene.launches if launch.kind == each]


def finding_of(fact: Fact, hit: Hit) -> PluginFinding | None:
    """Return a hit as a finding, or None where the fact does not hold for the engine's version."""
    message = escape(_filled(hit.message or fact.message or fact.title, hit.subject), 3000)
    severity = hit.severity or fact.severity
    held = _holds_for(fact, hit.subject)
    if held is False:
        return None
    if held is None and fact.valid_for is not None:
        severity = "info"
        message = f"not known for this engine version (stated for {fact.valid_for.engine_versions}): {message}"
    return PluginFinding(
        id=fact.id,
        severity=severity,
        path=escape(hit.place.path, 4000),
        file=hit.place.file,
        line=hit.place.line,
        column=hit.place.column,
        message=message,
        consequence=fact.consequence,
        silent=fact.silent,
        remedy=fact.remedy,
        sources=fact.sources,
        valid_for=fact.valid_for,
    )


def _holds_for(fact: Fact, subject: Subject | None) -> bool | None:
    if fact.valid_for is None or fact.valid_for.engine_versions is None:
        return True
    value = None if subject is None else subject.look(parse_field("launch version"))
    version = parse_version(str(value.value)) if value is not None and value.is_known else None
    return parse_range(fact.valid_for.engine_versions).contains(version)


def _filled(message: str, subject: Subject | None) -> str:
    def fill(match: re.Match[str]) -> str:
        if subject is None:
            return match[0]
        try:
            return subject.look(parse_field(match[1])).shown()
        except InputError:
            return match[0]

    return _REFERENCE.sub(fill, message)
