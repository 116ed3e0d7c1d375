"""Lint, placement and render: what comes through and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeplan.errors import InputError, PluginError
from moeplan.hooks.host import Host, open_host
from moeplan.model.plan import Plan
from moeplan.model.plugin import PluginFailure
from moeplan.model.rendering import LintRequest, ManifestSource
from tests.hooks.plugins import HEAD, add_plugin, hook

IMPORTS = "from moeplan.model.rendering import *\nfrom moeplan.model.placement import *\nfrom moeplan.errors import *\n"
FIGURES = """
KNOWN = Figure(1, "exact", "counted", SOURCE)
UNKNOWN = Figure(None, "unknown", "nobody says", ())
def role(name="serve", **more):
    figures = dict.fromkeys(
        ("weight_bytes", "draft_bytes", "device_bytes", "budget_bytes", "kv_bytes_per_token", "kv_tokens"), KNOWN)
    return RolePlacement(role=name, ranks=8, concurrent_requests=UNKNOWN, **{**figures, **more})
"""
REQUEST = LintRequest(
    (ManifestSource("one.yaml", "kind: Job\n---\nkind: Pod\n", (0,)), ManifestSource("-", "vllm serve m\n")), "single"
)
MS = 20_000


def host_of(directory: Path, body: str, deadline_ms: int | None = None) -> Host:
    add_plugin(directory, "a", body, head=HEAD + IMPORTS + FIGURES)
    host = open_host(deadline_ms=deadline_ms)
    assert host.failures == ()
    return host


def linted(directory: Path, *lines: str) -> PluginFailure:
    host = host_of(directory, hook("moeplan_lint(request)", *lines))
    (failure,) = host.lint({"a": REQUEST}, {}).failures
    assert (failure.plugin, failure.hook) == ("a", "moeplan_lint")
    return failure


@pytest.mark.parametrize("deadline_ms", [None, MS])
def test_a_plugin_gets_its_own_sources_and_says_where_a_fault_lies(deadline_ms: int | None, installed: Path) -> None:
    lines = (
        "told = repr((request.profile, [(s.name, s.text, s.documents) for s in request.sources], dict(site)))",
        "return (finding(file='one.yaml', line=3, column=7), finding(file='-', line=1, valid_for=ValidFor(told)),",
        "        finding(file='site'))",
    )
    add_plugin(installed, "b", hook("moeplan_lint(request)", "raise KeyError"))
    host = host_of(installed, hook("moeplan_lint(request, site)", *lines), deadline_ms)
    answers = host.lint({"a": REQUEST}, {"driver": "580"})
    assert answers.failures == ()  # the other one was not asked
    first, second, third = answers.only().value
    assert (first.plugin, first.file, first.line, first.column, first.path) == ("a", "one.yaml", 3, 7, "$.target")
    assert second.valid_for is not None
    assert second.valid_for.engine_versions == repr(
        (
            "single",
            [("one.yaml", "kind: Job\n---\nkind: Pod\n", (0,)), ("-", "vllm serve m\n", None)],
            {"driver": "580"},
        )
    )
    assert (third.file, third.line) == ("site", None)


@pytest.mark.parametrize(
    ("lines", "code", "says"),
    [
        (("return (finding(),)",), "false_place", "finding T-1 is at None"),
        (("return (finding(file='two.yaml', line=1),)",), "false_place", "'two.yaml', line 1; it is none"),
        (("return (finding(file='one.yaml', line=5),)",), "false_place", "line 5; there is no such line"),
        (("return (finding(file='one.yaml', column=1),)",), "false_place", "a column and no line"),
        (("return (finding(file='site', line=1),)",), "false_place", "no such line"),
        (("return (finding('T-9', file='-'),)",), "undeclared_id", "T-9"),
        (("return (finding(file='-', plugin='b'),)",), "false_name", "plugin b"),
        (("return (finding(file='-', line=0),)",), "raised", "an integer from 1"),
        (("request.sources[0].text = ''", "return ()"), "raised", "FrozenInstanceError"),
        (("object.__setattr__(request, 'profile', 'x')", "return ()"), "input_changed", "changed its input"),
        (("return None",), "none_returned", "empty tuple"),
        (("return [finding(file='-')]",), "wrong_type", "expected a tuple of PluginFinding"),
    ],
)  # fmt: skip
def test_a_lint_that_misbehaves_is_named(lines: tuple[str, ...], code: str, says: str, installed: Path) -> None:
    failure = linted(installed, *lines)
    assert failure.code == code
    assert says in failure.message


@pytest.mark.parametrize("place", ["file='one.yaml'", "line=1", "column=1", "file='site', line=1"])
def test_a_check_has_no_place_but_plan_and_site(place: str, installed: Path, plan: Plan) -> None:
    host = host_of(installed, hook("moeplan_check(plan)", "return (finding(file='plan'), finding(file='site'))"))
    assert [one.file for one in host.check(plan, {}).only().value] == ["plan", "site"]
    add_plugin(installed, "b", hook("moeplan_check(plan)", f"return (finding({place}),)"))
    (failure,) = open_host(deadline_ms=None).check(plan, {}).failures
    assert (failure.plugin, failure.code) == ("b", "false_place")


@pytest.mark.parametrize("deadline_ms", [None, MS])
def test_a_rendering_comes_through(deadline_ms: int | None, installed: Path, plan: Plan) -> None:
    lines = (
        "files = tuple(RenderedFile(n, f, n) for n, f in (('b.yaml', 'manifest'), ('A.sh', 'script')))",
        "return Rendering(files, (GuideStep('smoke', 'ask', site['namespace'], ('curl x',), 60),))",
    )
    got = host_of(installed, hook("moeplan_render(site)", *lines), deadline_ms).render(plan, {"namespace": "n"})
    rendering = got.only().value
    assert [(file.name, file.form, file.text) for file in rendering.files] == [
        ("b.yaml", "manifest", "b.yaml"),
        ("A.sh", "script", "A.sh"),
    ]
    (step,) = rendering.guide
    assert (step.part, step.statement, step.commands, step.deadline_seconds) == ("smoke", "n", ("curl x",), 60)


@pytest.mark.parametrize(
    ("result", "code", "says"),
    [
        ("Rendering((RenderedFile('a', 'text', 'x'), RenderedFile('A', 'text', 'x')))", "colliding_id", "file a is"),
        ("Rendering((RenderedFile('../a', 'text', 'x'),))", "raised", "matching"),
        ("Rendering((RenderedFile('.a', 'text', 'x'),))", "raised", "matching"),
        ("Rendering((RenderedFile('a', 'exe', 'x'),))", "raised", "one of manifest, script, text"),
        ("Rendering(())", "raised", "1 or more"),
        ("Rendering(tuple(RenderedFile(str(n), 'text', 'x' * 4_000_000) for n in range(3)))", "too_large", "8388608"),
        ("('a', 'b')", "wrong_type", "expected Rendering"),
        ("None", "none_returned", "None"),
    ],
)
def test_a_rendering_that_cannot_be_used_is_refused(
    result: str, code: str, says: str, installed: Path, plan: Plan
) -> None:
    (failure,) = host_of(installed, hook("moeplan_render()", f"return {result}")).render(plan, {}).failures
    assert (failure.code, failure.hook) == (code, "moeplan_render")
    assert says in failure.message


@pytest.mark.parametrize("deadline_ms", [None, MS])
def test_a_placement_comes_through(deadline_ms: int | None, installed: Path, plan: Plan) -> None:
    body = hook("moeplan_placement(plan)", "return Placement((role(), role('decode', kv_tokens=UNKNOWN)))")
    placement = host_of(installed, body, deadline_ms).placement(plan, {}).only().value
    assert [role.role for role in placement.roles] == ["serve", "decode"]
    assert placement.roles[1].kv_tokens.value is None
    assert (placement.roles[0].weight_bytes.value, placement.roles[0].weight_bytes.certainty) == (1, "exact")


@pytest.mark.parametrize(
    ("result", "code", "says"),
    [
        ("Placement((role(), role()))", "colliding_id", "role serve is there twice"),
        ("Placement((role(kv_tokens=Figure(None, 'exact', 'x', ())),))", "malformed_result", "kv_tokens of role serve"),
        ("Placement((role(kv_tokens=Figure(3, 'unknown', 'x', ())),))", "malformed_result", "kv_tokens of role serve"),
        ("Placement((role(kv_tokens=Figure(0.5, 'exact', 'x', ())),))", "raised", "an integer"),
        ("Placement(())", "raised", "1 or more"),
        ("None", "none_returned", "None"),
    ],
)
def test_a_placement_that_contradicts_itself_is_refused(
    result: str, code: str, says: str, installed: Path, plan: Plan
) -> None:
    (failure,) = host_of(installed, hook("moeplan_placement()", f"return {result}")).placement(plan, {}).failures
    assert failure.code == code
    assert says in failure.message


REFUSES = hook(
    "moeplan_render()",
    "one = Issue('$.images.engine', 'missing_site_value', 'no \\x1b image', 'a digest', None, 'write it')",
    "raise InputRefusedError(one, Issue('$.nodes', 'missing_site_value', 'no nodes'))",
)


@pytest.mark.parametrize("deadline_ms", [None, MS])
def test_a_plugin_says_what_is_wrong_in_its_input(deadline_ms: int | None, installed: Path, plan: Plan) -> None:
    answers = host_of(installed, REFUSES, deadline_ms).render(plan, {})
    (failure,) = answers.failures
    assert failure.code == "input_refused"
    assert [(one.path, one.code) for one in failure.issues] == [
        ("$.images.engine", "missing_site_value"),
        ("$.nodes", "missing_site_value"),
    ]
    with pytest.raises(InputError) as caught:
        answers.only()
    assert str(caught.value.issues[0]) == r"$.images.engine: no \x1b image; expected a digest; write it"


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        ("InputError(Issue('$.a', 'invalid_value', 'refused'))", "raised"),
        ("InputRefusedError(7)", "raised"),
        ("InputRefusedError(Issue(None, 'a', 'b'))", "malformed_result"),
    ],
)
def test_another_error_is_the_plugins_own(raised: str, code: str, installed: Path, plan: Plan) -> None:
    answers = host_of(installed, hook("moeplan_render()", f"raise {raised}")).render(plan, {})
    assert [failure.code for failure in answers.failures] == [code]
    with pytest.raises(PluginError):
        answers.only()
