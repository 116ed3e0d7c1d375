"""Options a release has, and values its parser can read, through the plugin's own judge."""

from __future__ import annotations

import pytest
from moeplan_vllm.facts import vllm_facts
from moeplan_vllm.programs import IMAGES, vllm_programs
from moeplan_vllm.rules.registered import RULES

from moeplan.facts.judge import judge
from moeplan.facts.launches import Knowledge, read_scene
from moeplan.model.rendering import ManifestSource

KNOWLEDGE = Knowledge(programs=vllm_programs(), versioned=IMAGES)


def found(words: str, version: str | None) -> list[tuple[str, str, int | None]]:
    site = {} if version is None else {"engineVersion": version}
    scene = read_scene([ManifestSource("s.sh", f"vllm serve /m {words}\n")], KNOWLEDGE, site)
    findings = judge(scene, vllm_facts(), RULES)
    return [(one.id, one.severity, one.column) for one in findings if one.id.startswith("V-ARG")]


@pytest.mark.parametrize(
    ("share", "wrong"), [("0.9", False), ("1", False), ("1.5", True), ("0", True), ("$UTIL", False)]
)
def test_share_of_memory(share: str, wrong: bool) -> None:
    scene = read_scene([ManifestSource("s.sh", f"vllm serve /m --gpu-memory-utilization {share}\n")], KNOWLEDGE)
    assert ("V-MEM-001" in {one.id for one in judge(scene, vllm_facts(), RULES)}) is wrong


@pytest.mark.parametrize(
    ("words", "version", "expected"),
    [
        ("--tensor-parallel-size 8", "0.27.1", []),
        ("--tensor-size 8", "0.27.1", [("V-ARG-001", "error", 15)]),
        ("--tensor-size 8", None, [("V-ARG-001", "info", 15)]),
        ("--tensor-size 8", "0.99.0", [("V-ARG-001", "info", 15)]),
        ("--enable-eplb --eplb-config.window_size 100", "0.27.1", []),
        ("--port", "0.27.1", [("V-ARG-002", "error", 15)]),
        ("--speculative-config '{method: mtp}'", "0.27.1", [("V-ARG-002", "error", 36)]),
        ("--enforce-eager=1", "0.27.1", [("V-ARG-002", "error", 15)]),
        ("$MORE --tensor-size 8", "0.27.1", [("V-ARG-001", "error", 21)]),
    ],
)
def test_option(words: str, version: str | None, expected: list[tuple[str, str, int]]) -> None:
    assert found(words, version) == expected


def test_an_option_of_other_releases_is_told() -> None:
    from moeplan_vllm.arguments import argument_table

    bounded = [spec for spec in argument_table().specs if "<" in spec.versions.text and spec.kind == "flag"]
    assert bounded
    spec = bounded[0]
    newest = "0.33.0"
    ((fact, severity, _),) = found(spec.name, newest) or [("", "", 0)]
    assert (fact, severity) == ("V-ARG-001", "error")
