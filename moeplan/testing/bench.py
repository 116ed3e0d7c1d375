"""Asks one plugin everything a suite wants to know: in this process through the host, and in processes of its own."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import pytest

from moeplan.diagnosis.result import Diagnosis
from moeplan.errors import MoeplanError
from moeplan.hooks.answers import Answers, InstalledPlugin
from moeplan.hooks.host import Host, open_host
from moeplan.model.plugin import LogSignature, PluginFailure, PluginFinding
from moeplan.model.rendering import Rendering
from moeplan.testing.asking import Asked, ask
from moeplan.testing.cases import (
    CheckCase,
    LintCase,
    LintGolden,
    Negative,
    RenderGolden,
    lint_request,
    load_plan,
    load_site_values,
)
from moeplan.testing.documented import facts_of
from moeplan.testing.questions import Inputs, hostile_questions, own_questions, read_inputs

__all__ = ["JUDGED_ELSEWHERE", "Bench", "fail_with"]

JUDGED_ELSEWHERE = ("input_changed",)
"""Failures that have a test of their own."""
_MOST_TOLD = 10


def fail_with(faults: Iterable[str]) -> None:
    """Fail the test with the faults, where there is one; ten are told."""
    told = list(dict.fromkeys(faults))
    if told:
        more = f"\n… and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
        pytest.fail("\n".join(told[:_MOST_TOLD]) + more, pytrace=False)


@attrs.define(slots=False, eq=False)
class Bench:
    """One plugin with the cases of its suite; ``directory`` is where the cases' paths start."""

    name: str
    directory: Path
    cases: Sequence[Any]
    healthy: Sequence[str]
    deadline_s: int
    _asked: dict[tuple[str, int], Asked] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, suite: type, name: str, cases: Sequence[Any], healthy: Sequence[str], deadline_s: int) -> Bench:
        """Return the bench of a suite: paths start at the file that the suite's class stands in."""
        return cls(name, Path(inspect.getfile(suite)).resolve().parent, cases, healthy, deadline_s)

    @cached_property
    def host(self) -> Host:
        """Return a host that calls the plugin in this process."""
        fail_with([] if self.name else ["the suite names no plugin: plugin = 'the name of its entry point'"])
        try:
            return open_host((self.name,), deadline_ms=None)
        except MoeplanError as error:
            pytest.fail(str(error), pytrace=False)

    @property
    def installed(self) -> InstalledPlugin:
        """Return the plugin; one that cannot be used fails the test."""
        fail_with(_told(failure) for failure in self.host.failures)
        return self.host.plugins[0]

    @cached_property
    def inputs(self) -> Inputs:
        """Return the author's inputs, read."""
        formats: tuple[str, ...] = ()
        if "moeplan_importers" in self.installed.hooks:
            formats = tuple(one.format for answer in self.host.importers().answers for one in answer.value)
        with _readable():
            return read_inputs(self.directory, self.cases, self.healthy, formats)

    def asked(self, kind: str, surroundings: int) -> Asked:
        """Return the answers of a new process to the author's own inputs, or to ``hostile`` ones; asked once."""
        key = kind, surroundings
        if key not in self._asked:
            make = own_questions if kind == "own" else hostile_questions
            questions = list(make(self.inputs, self.installed.hooks))
            self._asked[key] = ask(self.installed.entry, questions, surroundings, self.deadline_s)
        return self._asked[key]

    def failures(self) -> Iterator[PluginFailure]:
        """Yield the failures of all hooks with the author's inputs, but for what other tests tell of."""
        given: list[Answers[Any]] = [self.host.log_signatures(), self.host.preflight(), self.host.importers()]
        for _about, plan, site in self.inputs.plans:
            hooks = (self.host.check, self.host.criteria, self.host.placement, self.host.render)
            given += [hook(plan, site) for hook in hooks]
        for _about, request, site in self.inputs.requests:
            given.append(self.host.lint({self.name: request}, site))
        for answers in given:
            yield from (one for one in answers.failures if one.code not in ("input_refused", *JUDGED_ELSEWHERE))

    def signatures(self) -> tuple[LogSignature, ...]:
        """Return the plugin's log signatures."""
        return tuple(one for answer in self.host.log_signatures().answers for one in answer.value)

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield what the plugin states, and the source it names for that."""
        for profile in self.installed.info.profiles:
            yield from ((f"profile {profile.id}", one.source) for one in profile.sources)
        for signature in self.signatures():
            yield from ((f"signature {signature.id}", one.source) for one in signature.sources)
        for _about, request, site in self.inputs.requests:
            for answer in self.host.lint({self.name: request}, site).answers:
                yield from ((f"finding {f.id}", one.source) for f in answer.value for one in f.sources)
        for origin in sorted({rule.origin for rule in self.installed.info.rules}):
            for fact in facts_of(origin, self.installed.entry.value):
                yield from ((f"fact {fact['id']}", source) for source in _sources_of(fact))

    def linted(self, case: LintCase | LintGolden) -> tuple[PluginFinding, ...]:
        """Return the plugin's findings in a source."""
        with _readable():
            request = lint_request(self.directory, case.source, case.profile)
            site = load_site_values(self.directory, case.site)
        answers = self.host.lint({self.name: request}, site)
        fail_with(f"{case.source}: {_told(failure)}" for failure in answers.failures)
        return tuple(finding for answer in answers.answers for finding in answer.value)

    def found(self, case: Negative) -> set[str]:
        """Return the ids that the plugin finds in a negative case."""
        if isinstance(case, LintCase):
            return {finding.id for finding in self.linted(case)}
        if isinstance(case, CheckCase):
            with _readable():
                plan, site = load_plan(self.directory, case.plan), load_site_values(self.directory, case.site)
            answers = self.host.check(plan, site)
            fail_with(_told(failure) for failure in answers.failures)
            return {finding.id for answer in answers.answers for finding in answer.value}
        return {finding.id for finding in self._diagnosed(case.log).findings}

    def log_errors(self, log: str) -> list[str]:
        """Return the error findings in a log."""
        found = self._diagnosed(log).findings
        return [f"{one.id} at line {one.first_line}" for one in found if one.severity == "error"]

    def rendering(self, golden: RenderGolden) -> Rendering:
        """Return what the plugin renders for a golden."""
        with _readable():
            plan, site = load_plan(self.directory, golden.plan), load_site_values(self.directory, golden.site)
        try:
            return self.host.render(plan, site).only().value
        except MoeplanError as error:
            pytest.fail(f"{golden.directory}: {error}", pytrace=False)

    def _diagnosed(self, log: str) -> Diagnosis:
        from moeplan.diagnosis.diagnose import diagnose

        with _readable():
            return diagnose(self.directory / log, {self.name: self.signatures()})


@contextmanager
def _readable() -> Iterator[None]:
    """Let a case that cannot be read fail the test, and not end it."""
    try:
        yield
    except MoeplanError as error:
        pytest.fail(f"a case cannot be read: {error}", pytrace=False)


def _told(failure: PluginFailure) -> str:
    return f"{failure.hook} [{failure.code}]: {failure.message}"


def _sources_of(fact: Mapping[str, Any]) -> list[str]:
    listed = fact.get("sources")
    given = [one.get("source") if isinstance(one, dict) else one for one in listed or ()]
    return [str(one) for one in given] or [""]
