"""The suite that an author's test class inherits: what every plugin has to keep to, each as one test.

An author writes ``class TestMine(RuntimePluginSuite)`` and says which plugin, what it must find, what must come out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from moeplan.testing.bench import JUDGED_ELSEWHERE, Bench, fail_with
from moeplan.testing.cases import Golden, LintCase, LintGolden, LogCase, Negative, RenderGolden
from moeplan.testing.documented import undocumented
from moeplan.testing.goldens import golden_files, rendered_faults, write_files

__all__ = ["REGENERATE", "RuntimePluginSuite"]

REGENERATE = "MOEPLAN_REGENERATE"
"""Environment variable: set to 1, goldens are written anew and their test fails, so that nobody takes it for a pass."""
_PLACEHOLDERS = ("todo", "fixme", "tbd", "xxx", "?", "n/a", "none", "unknown", "source", "a document")


class RuntimePluginSuite:
    """Tests of one plugin. A subclass sets ``plugin``, ``negative`` and ``golden``; its name begins with ``Test``.

    Paths are relative to the file of the subclass. Nothing is skipped: a suite without a fact, a negative case and a
    golden fails and says what to add.

    Attributes:
        plugin: name of the plugin's entry point.
        negative: what has to be found: :class:`LintCase`, :class:`CheckCase`, :class:`LogCase`.
        golden: what has to come out byte for byte: :class:`LintGolden`, :class:`RenderGolden`.
        healthy: manifests and scripts without an error or a warning.
        healthy_logs: logs without an error finding.
        deadline_s: seconds after which a plugin that does not answer at all is given up; it measures nothing.
    """

    plugin: ClassVar[str] = ""
    negative: ClassVar[Sequence[Negative]] = ()
    golden: ClassVar[Sequence[Golden]] = ()
    healthy: ClassVar[Sequence[str]] = ()
    healthy_logs: ClassVar[Sequence[str]] = ()
    deadline_s: ClassVar[int] = 600

    # What there has to be.

    def test_it_is_installed(self) -> None:
        """The plugin loads, says its true name and claims no id twice."""
        assert self._bench().installed.name == self.plugin

    def test_it_has_a_fact(self) -> None:
        """A plugin that knows nothing is none."""
        if not self._bench().installed.info.rules:
            fail_with(
                ["the plugin declares no id: add a fact to its facts file and return its rules in moeplan_runtime"],
            )

    def test_it_has_a_negative_case(self) -> None:
        """A check that nothing was shown to fail may be one that cannot."""
        if not self.negative:
            fail_with(['there is no negative case: negative = (LintCase("ID", "cases/wrong.sh"),)'])

    def test_it_has_a_golden(self) -> None:
        """What comes out is looked at by a person once, and any change of it afterwards."""
        if not self.golden:
            fail_with(['there is no golden: golden = (LintGolden("cases/wrong.sh", "golden/wrong.json"),)'])
        if "moeplan_render" in self._bench().installed.hooks and not [
            one for one in self.golden if isinstance(one, RenderGolden)
        ]:
            fail_with(
                ['it renders and no golden shows what: RenderGolden("plan.json", "site.yaml", "golden/rendered")']
            )

    # What it does with its own inputs.

    def test_each_answer_is_accepted(self) -> None:
        """Every answer is of its type, its ids are declared, its places exist, its patterns compile."""
        fail_with(f"{failure.hook} [{failure.code}]: {failure.message}" for failure in self._bench().failures())

    def test_answers_are_the_same_twice_and_everywhere(self) -> None:
        """Two new processes with another hash seed, time zone, locale, home and directory say the same."""
        first, second = (self._bench().asked("own", number) for number in (0, 1))
        fail_with(fault for fault in (first.fault, second.fault) if fault)
        pairs = zip(first.answers, second.answers, strict=True)
        fail_with(f"{a.told()} answers in two ways" for a, b in pairs if (a.value, a.code) != (b.value, b.code))

    def test_it_is_pure(self) -> None:
        """No clock, no random numbers, no network, no process, no file but those of packages; nothing is written."""
        for kind in ("own", "hostile"):
            asked = self._bench().asked(kind, 0)
            fail_with(f"loading it: {seen}" for seen in asked.seen_on_load)
            fail_with(f"{answer.told()}: {seen}" for answer in asked.answers for seen in answer.seen)

    def test_inputs_stay_as_they_were(self) -> None:
        """No hook changes what it is given, by force either."""
        answers = self._bench().asked("own", 0).answers
        fail_with(f"{answer.told()}: {answer.message}" for answer in answers if answer.code == "input_changed")

    def test_hostile_inputs_are_answered_or_refused(self) -> None:
        """Odd plans, sites, manifests, scripts and files give an answer or InputRefusedError, and nothing else."""
        asked = self._bench().asked("hostile", 0)
        fail_with([asked.fault] if asked.fault else [])
        allowed = (None, "input_refused", "too_large", *JUDGED_ELSEWHERE)
        fail_with(f"{one.told()} [{one.code}]: {one.message}" for one in asked.answers if one.code not in allowed)

    # What it knows.

    def test_each_statement_has_a_source(self) -> None:
        """Sources of facts, profiles and signatures say something that can be looked up."""
        fail_with(
            f"{what}: the source {source!r} is none" for what, source in self._bench().sources() if _is_blank(source)
        )

    def test_each_id_is_documented(self) -> None:
        """An id is a fact's, with its consequence, remedy and sources, or the distribution's description names it."""
        installed = self._bench().installed
        missing = undocumented(installed.info.rules, installed.entry.value)
        fail_with(f"{one} is documented nowhere: make it a fact, or name it in the README" for one in missing)

    def test_each_log_signature_is_specific(self) -> None:
        """No signature is an exception's name alone or so short that other lines bear it too."""
        from moeplan.diagnosis.required_text import signature_fault

        fail_with(str(fault) for one in self._bench().signatures() if (fault := signature_fault(one)) is not None)

    def test_negative_cases_are_found(self) -> None:
        """Each negative case gives its id."""
        for case in self.negative:
            found = self._bench().found(case)
            if case.id not in found:
                told = ", ".join(sorted(found)) or "nothing"
                fail_with([f"{_where(case)}: {case.id} is not found, but {told}"])

    def test_healthy_cases_are_clean(self) -> None:
        """What is right gives no error and no warning, and a healthy log no error."""
        for source in self.healthy:
            findings = self._bench().linted(LintCase("", source))
            fail_with(f"{source}:{f.line}: {f.id}: {f.message}" for f in findings if f.severity != "info")
        for log in self.healthy_logs:
            fail_with(f"{log}: {one}" for one in self._bench().log_errors(log))

    def test_rendered_files_are_complete_and_its_own(self) -> None:
        """No placeholder, images by digest, recognised as its own, and its own lint finds nothing."""
        for golden in [one for one in self.golden if isinstance(one, RenderGolden)]:
            fail_with(rendered_faults(self._bench(), golden))

    def test_goldens(self) -> None:
        """What comes out is what stands in the files; MOEPLAN_REGENERATE=1 writes them anew."""
        written = []
        faults = []
        for golden in self.golden:
            wanted, stands = golden_files(self._bench(), golden)
            if wanted == stands:
                continue
            if os.environ.get(REGENERATE) == "1":
                write_files(self._bench().directory, wanted, stands)
                written.append(f"{_name_of(golden)} was written: look at it, then run without {REGENERATE}")
            else:
                names = sorted(n for n in wanted.keys() | stands.keys() if wanted.get(n) != stands.get(n))
                faults += [f"{name} is not what comes out; if that is right, run with {REGENERATE}=1" for name in names]
        fail_with([*faults, *written])

    # How it is asked.

    _benches: ClassVar[dict[type, Bench]] = {}

    @classmethod
    def _bench(cls) -> Bench:
        """Return what asks the plugin, one for a class: its processes are started once."""
        if cls not in cls._benches:
            cls._benches[cls] = Bench.of(cls, cls.plugin, (*cls.negative, *cls.golden), cls.healthy, cls.deadline_s)
        return cls._benches[cls]


def _where(case: Negative) -> str:
    return case.source if isinstance(case, LintCase) else case.log if isinstance(case, LogCase) else "moeplan_check"


def _name_of(golden: Golden) -> str:
    return golden.expected if isinstance(golden, LintGolden) else golden.directory


def _is_blank(source: str) -> bool:
    words = source.strip().lower()
    return words.startswith("<") or words in _PLACEHOLDERS or not any(character.isalnum() for character in words)
