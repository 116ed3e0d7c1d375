"""What well-behaved plugins get and give: order, names, selection, allow-list."""

from __future__ import annotations

from pathlib import Path

import pytest

from moeplan.errors import InputError, PluginError
from moeplan.hooks.host import Host, open_host
from moeplan.hooks.selection import select_plugin
from moeplan.model.plan import Plan
from tests.hooks.plugins import add_plugin, hook

ALL = "".join(
    (
        hook("moeplan_check(plan, site)", "return (finding(valid_for=ValidFor('>=0.9')),) if site['nodes'] else ()"),
        hook("moeplan_criteria(plan)", "return (offer(),)"),
        hook("moeplan_log_signatures()", "return (signature(pattern='bo+m'),)"),
        hook("moeplan_owns_manifest(manifest)", "return manifest['kind'] == 'Job' if 'kind' in manifest else None"),
    )
)


def host_of(directory: Path, *names: str, body: str = ALL) -> Host:
    for name in names:
        add_plugin(directory, name, body)
    host = open_host(deadline_ms=None)
    assert host.failures == ()
    return host


def test_no_plugin_is_installed(installed: Path) -> None:
    assert open_host() == Host((), (), 10_000)


def test_plugins_answer_in_the_order_of_their_names_with_their_versions(installed: Path, plan: Plan) -> None:
    add_plugin(installed, "b", ALL, version="2.0")
    host = host_of(installed, "c", "a")
    answers = host.check(plan, {"nodes": ["n1"]})
    assert [(a.plugin, a.version) for a in answers.answers] == [("a", "1.0"), ("b", "2.0"), ("c", "1.0")]
    assert host.plugins[0].hooks == (
        "moeplan_runtime",
        "moeplan_check",
        "moeplan_criteria",
        "moeplan_log_signatures",
        "moeplan_owns_manifest",
    )


@pytest.mark.parametrize("deadline_ms", [None, 20_000])
def test_every_hook_answers_the_same_in_either_process(deadline_ms: int | None, installed: Path, plan: Plan) -> None:
    host = Host(host_of(installed, "a").plugins, (), deadline_ms)
    (finding,) = host.check(plan, {"nodes": ["n1"]}).only().value
    assert (finding.id, finding.plugin, finding.severity, finding.silent) == ("T-1", "a", "error", "no")
    assert finding.valid_for is not None
    assert finding.valid_for.engine_versions == ">=0.9"
    assert host.check(plan, {"nodes": []}).only().value == ()
    (added,) = host.criteria(plan, {}).only().value
    assert (added.gate, added.criterion.id, added.criterion.contributed_by) == ("runtime_load", "extra", "a@1.0")
    assert added.criterion.on_missing == "inconclusive"
    (signature,) = host.log_signatures().only().value
    assert (signature.literals, signature.pattern, signature.expectation) == (("boom",), "bo+m", "must_be_zero")
    assert host.owners([{"kind": "Job"}, {"kind": "Pod"}, {}]).only().value == (True, False, None)
    assert host.owners([]).only().value == ()


def test_a_plugin_without_the_hook_is_not_asked(installed: Path, plan: Plan) -> None:
    add_plugin(installed, "b")
    host = host_of(installed, "a")
    assert [answer.plugin for answer in host.check(plan, {"nodes": []}).answers] == ["a"]
    assert host.check(plan, {}, only=["b"]).answers == ()
    with pytest.raises(PluginError, match="no plugin answers"):
        host.check(plan, {}, only=["b"]).only()


def test_a_failure_where_nothing_else_can_answer_is_an_error(installed: Path, plan: Plan) -> None:
    host = host_of(installed, "a", body=hook("moeplan_check(plan, site)", "raise ValueError('why')"))
    with pytest.raises(PluginError, match=r"^plugin a: moeplan_check: the hook raised ValueError at .*: why; see"):
        host.check(plan, {}).only()


def test_a_criterion_that_the_plan_has_is_refused(installed: Path, plan: Plan) -> None:
    taken = plan.validation_gates[0].criteria[0].id
    host = host_of(installed, "a", body=hook("moeplan_criteria()", f"return (offer({taken!r}),)"))
    (failure,) = host.criteria(plan, {}).failures
    assert failure.code == "colliding_id"
    assert f"the plan has a criterion {taken}" in failure.message


def test_one_criterion_of_two_plugins_is_refused_of_both(installed: Path, plan: Plan) -> None:
    add_plugin(installed, "c", hook("moeplan_criteria()", "return (offer('other'),)"))
    answers = host_of(installed, "a", "b").criteria(plan, {})
    assert [answer.plugin for answer in answers.answers] == ["c"]
    assert [(failure.plugin, failure.code) for failure in answers.failures] == [
        ("a", "colliding_id"),
        ("b", "colliding_id"),
    ]


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        ("pattern='(a'", "invalid_pattern", "does not compile"),
        ("literals=()", "invalid_pattern", "neither a literal text nor a pattern"),
        ("id='T-9'", "undeclared_id", "T-9"),
    ],
)
def test_a_log_signature_that_cannot_be_used_is_refused(more: str, code: str, says: str, installed: Path) -> None:
    host = host_of(installed, "a", body=hook("moeplan_log_signatures()", f"return (signature({more}),)"))
    (failure,) = host.log_signatures().failures
    assert failure.code == code
    assert says in failure.message


def test_only_allowed_plugins_are_loaded(installed: Path) -> None:
    add_plugin(installed, "bad", "raise RuntimeError")
    add_plugin(installed, "good")
    host = open_host(["good"])
    assert ([plugin.name for plugin in host.plugins], host.failures) == (["good"], ())
    with pytest.raises(InputError, match=r"no such plugin; expected one of bad, good, got 'god'; did you mean 'good'"):
        open_host(["god"])


def several(directory: Path) -> Host:
    add_plugin(directory, "vllm-cuda", vendor="nvidia", profiles=("single", "pair"))
    add_plugin(directory, "vllm-rocm", vendor="amd", profiles=("single", "opt/aggregated"))
    add_plugin(directory, "sglang-rocm", engine="sglang", vendor="amd", profiles=("single",))
    return open_host(deadline_ms=None)


@pytest.mark.parametrize(
    ("wanted", "plugin", "profile"),
    [
        (("vllm-cuda",), "vllm-cuda", None),
        (("sglang",), "sglang-rocm", None),
        (("vllm", "amd"), "vllm-rocm", None),
        (("vllm", None, "pair"), "vllm-cuda", "pair"),
        (("vllm", "amd", "single"), "vllm-rocm", "single"),
    ],
)
def test_runtime_vendor_and_profile_select_one(
    wanted: tuple[str, ...], plugin: str, profile: str | None, installed: Path
) -> None:
    got = select_plugin(several(installed).plugins, *wanted)
    assert got.plugin.name == plugin
    assert (got.profile.id if got.profile else None) == profile


@pytest.mark.parametrize(
    ("wanted", "code", "says"),
    [
        (("vlm",), "unknown_runtime", "did you mean 'vllm'?"),
        (("tgi",), "unknown_runtime", "expected one of sglang, sglang-rocm, vllm, vllm-cuda, vllm-rocm"),
        (("vllm", "nvidea"), "unknown_vendor", "did you mean 'nvidia'?"),
        (("vllm", "amd", "opt/agregated"), "unknown_profile", "did you mean 'opt/aggregated'?"),
        (("vllm-cuda", "amd"), "unknown_vendor", "expected one of nvidia"),
        (("vllm", None, "single"), "ambiguous_plugin", "got vllm-cuda, vllm-rocm"),
    ],
)
def test_a_near_miss_and_an_ambiguity_are_named(wanted: tuple[str, ...], code: str, says: str, installed: Path) -> None:
    with pytest.raises(InputError) as caught:
        select_plugin(several(installed).plugins, *wanted)
    assert caught.value.issues[0].code == code
    assert says in str(caught.value)


def test_selecting_where_nothing_is_installed_says_so() -> None:
    with pytest.raises(InputError, match="expected an installed plugin; none is"):
        select_plugin((), "vllm")
