"""Facts against scenes: findings with place, message and version; what a fact file must keep to."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from moeplan.errors import InputError
from moeplan.facts.judge import Hit, judge
from moeplan.facts.launches import Scene
from tests.unit.facts.made import KNOWLEDGE, facts, pod, scene

UTILISATION = {
    "id": "U-1",
    "violated": {"field": "argument --gpu-memory-utilization", "above": "0.88"},
    "message": "{argument --gpu-memory-utilization} for {launch model} and {no field}",
}


def found(*rows: dict[str, Any], text: str, **more: Any) -> list[tuple[str, str, int | None, str]]:
    return [(f.id, f.severity, f.line, f.message) for f in judge(scene(text, **more), facts(*rows))]


def test_a_violated_fact_is_found_at_its_place() -> None:
    text = "vllm serve /m/Known \\\n  --gpu-memory-utilization=0.95\n"
    (finding,) = judge(scene(text), facts(UTILISATION))
    assert (finding.line, finding.column, finding.path, finding.file) == (2, 3, "$", "0")
    assert finding.message == "0.95 for /m/Known and {no field}"
    assert (finding.severity, finding.silent, finding.remedy) == ("error", "no", "r")
    assert not judge(scene(text.replace("0.95", "0.88")), facts(UTILISATION))
    assert not judge(scene(text.replace("0.95", "$HOW")), facts(UTILISATION)), "not known is no finding"


def test_when_and_profiles_narrow() -> None:
    text = "vllm serve /m --gpu-memory-utilization 0.95\n"
    only_large = {**UTILISATION, "when": {"field": "argument --tensor-parallel-size", "at-least": 8}}
    assert found(only_large, text=text) == []
    assert len(found(only_large, text=text.replace("/m", "/m -tp 8"))) == 1
    scoped = {**UTILISATION, "profiles": ["opt/*"]}
    assert found(scoped, text=text) == []
    recognised = attrs.evolve(KNOWLEDGE, profile=lambda _scene: "opt/aggregated")
    assert len(found(scoped, text=text, knowledge=recognised)) == 1


def test_versions() -> None:
    fact = {**UTILISATION, "validFor": {"engineVersions": ">=0.30"}}
    text = "vllm serve /m --gpu-memory-utilization 0.95\n"
    assert [f[1] for f in found(fact, text=text, site={"engineVersion": "0.32.0"})] == ["error"]
    assert found(fact, text=text, site={"engineVersion": "0.27.1"}) == []
    ((_, severity, _, message),) = found(fact, text=text)
    assert severity == "info"
    assert message.startswith("not known for this engine version (stated for >=0.30)")


def test_of_several_faults_the_one_that_is_there_is_shown() -> None:
    either = {
        "id": "X-1",
        "violated": {
            "any": [
                {"field": "argument --gpu-memory-utilization", "above": "0.9"},
                {"all": [{"field": "launch kind", "is": "engine"}, {"field": "environment MODE", "is": "1"}]},
            ]
        },
    }
    text = pod("[vllm, serve, /m, --gpu-memory-utilization, '0.8']", "env:\n        - {name: MODE, value: '1'}")
    (line,) = [number for number, one in enumerate(text.splitlines(), 1) if "MODE" in one]
    assert [one[2] for one in found(either, text=text)] == [line]


def test_a_group_shows_the_engine_that_lacks_what_the_other_has() -> None:
    fact = {"id": "G-1", "each": "group", "violated": {"differs": "argument --speculative-config"}}
    texts = (pod("[vllm, serve, /m, --spec.method, mtp]"), pod(name="other"))
    (finding,) = judge(scene(*texts), facts(fact))
    assert finding.file == "1"
    (finding,) = judge(scene(*texts[::-1]), facts(fact))
    assert finding.file == "0"
    assert judge(scene(texts[1], texts[1]), facts(fact)) == ()


def test_pods_and_documents_are_judged_too() -> None:
    host = {"id": "P-1", "each": "pod", "violated": {"field": "pod hostNetwork", "is-not": True}}
    kind = {"id": "D-1", "each": "document", "violated": {"field": "document metadata.namespace", "absent": True}}
    assert [one[0] for one in found(host, kind, text=pod("[sleep, '1']"))] == ["D-1", "P-1"]
    assert [one[0] for one in found(host, kind, text=pod(pod_more="hostNetwork: true"))] == ["D-1"]


def test_code_judges_what_data_cannot() -> None:
    def odd(read: Scene) -> list[Hit]:
        return [Hit(launch.place(), "odd", launch, "warning") for launch in read.launches]

    (finding,) = judge(scene("vllm serve /m\n"), facts({"id": "C-1"}), {"C-1": odd})
    assert (finding.id, finding.severity, finding.message, finding.line) == ("C-1", "warning", "odd", 1)


def test_log_signatures_and_rules_of_a_set() -> None:
    made = facts({"id": "L-1", "logs": [{"literals": ["boom"], "expectation": "must_be_zero", "severity": "warning"}]})
    (signature,) = made.log_signatures()
    assert (signature.id, signature.literals, signature.severity) == ("L-1", ("boom",), "warning")
    assert (signature.cause, signature.remedy) == ("c", "r")
    joined = made.joined(attrs.evolve(facts({"id": "L-2"}), origin="other"))
    assert [(rule.id, rule.origin) for rule in joined.rules()] == [("L-1", "made"), ("L-2", "other")]
    with pytest.raises(InputError, match="two sets"):
        made.joined(made)


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ({"severity": "fatal"}, "X-1.severity"),
        ({"sources": []}, "X-1.sources"),
        ({"sources": [{"where": "x"}]}, "X-1.sources[0]"),
        ({"violated": {"field": "argument --x", "is": 1, "above": 1}}, "X-1.violated"),
        ({"when": {"field": "nothing", "is": 1}}, "X-1.when.field"),
        ({"remdy": "r"}, "X-1"),
    ],
)
def test_malformed_facts_are_named(row: dict[str, Any], path: str) -> None:
    with pytest.raises(InputError) as caught:
        facts({"id": "X-1", **row})
    assert caught.value.issues[0].path.startswith(path)


def test_ids_stand_once() -> None:
    with pytest.raises(InputError, match="twice"):
        facts({"id": "X-1"}, {"id": "X-1"})


def test_a_message_can_name_what_shows_the_fault() -> None:
    either = {
        "id": "X-2",
        "violated": {
            "any": [
                {"field": "argument --gpu-memory-utilization", "above": "0.9"},
                {"field": "environment MODE", "is-not": "1"},
            ]
        },
        "message": "odd: {at}",
    }
    shown = [found(either, text=text)[0][3] for text in ("vllm serve /m", "vllm serve /m --gpu-memory-utilization .95")]
    assert shown == ["odd: MODE is not set", "odd: --gpu-memory-utilization is .95"]
