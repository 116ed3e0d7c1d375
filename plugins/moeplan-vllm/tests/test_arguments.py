"""The options of vLLM, release by release, against what real runs and the releases themselves say."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
from moeplan_vllm.arguments import argument_table, was_read
from moeplan_vllm.environment import find_variable, near_variables, variables

from moeplan.manifests.arguments import read_arguments
from moeplan.manifests.commands import Word
from moeplan.manifests.versions import parse_version

SHARED = Path(__file__).resolve().parents[4] / "shared"
TABLE = argument_table()


def exists(name: str, version: str) -> bool | None:
    spec = TABLE.find(name)
    assert spec is not None
    return spec.exists_in(parse_version(version))


# From the releases' own notes and sources: (option, last release without it, first with it or the other way round).
@pytest.mark.parametrize(
    ("name", "without", "having"),
    [
        ("--task", "0.13.0", "0.12.0"),
        ("--swap-space", "0.18.0", "0.17.1"),
        ("--spec-model", "0.11.0", "0.33.0"),
        ("--attention-backend", "0.11.0", "0.13.0"),
        ("--moe-backend", "0.11.0", "0.27.1"),
        ("--data-parallel-multi-port-external-lb", "0.20.2", "0.32.0"),
        ("--calculate-kv-scales", "0.28.0", "0.27.1"),
    ],
)
def test_options_come_and_go(name: str, without: str, having: str) -> None:
    assert exists(name, without) is False
    assert exists(name, having) is True


@pytest.mark.parametrize(
    ("alias", "name", "kind"),
    [
        ("-tp", "--tensor-parallel-size", "value"),
        ("-dpl", "--data-parallel-size-local", "value"),
        ("-ep", "--enable-expert-parallel", "flag"),
        ("-sc", "--speculative-config", "json"),
        ("-cc", "--compilation-config", "json"),
        ("-O", "--optimization-level", "value"),
        ("--served_model_name", "--served-model-name", "list"),
        ("--kv-transfer-config", "--kv-transfer-config", "json"),
        ("--async-scheduling", "--async-scheduling", "flag"),
        ("--pt-load-map-location", "--pt-load-map-location", "value"),
    ],
)
def test_aliases_and_kinds(alias: str, name: str, kind: str) -> None:
    spec = TABLE.find(alias)
    assert spec is not None
    assert (spec.name, spec.kind) == (name, kind)


def test_options_of_other_engines_are_none_of_these() -> None:
    for name in ("--tp-size", "--mem-fraction-static", "--request-transport", "--disaggregation-mode", "--xyz"):
        assert TABLE.find(name) is None


def test_releases_beyond_those_read_are_not_known() -> None:
    assert was_read(parse_version("0.32.0"))
    assert not was_read(parse_version("0.34.0"))
    assert not was_read(parse_version("0.9.2"))
    assert not was_read(None)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared samples do not lie beside the repository")
def test_every_option_that_a_real_run_resolved_is_known() -> None:
    log = (SHARED / "samples/made/serve.log").read_text(encoding="utf-8")
    found = re.search(r"non-default args: (\{.*\})", log)
    assert found is not None
    given = ast.literal_eval(found[1])
    assert given["served_model_name"] == ["tiny-moe"]
    for key in set(given) - {"model_tag"}:
        assert exists("--" + key, "0.32.0") is True, key


# Options in the handed facts and cases that are vLLM's; those of Infera, SGLang, docker and other tools are not.
_OTHERS = re.compile(
    r"--(disaggregation|request-transport|kv-event-|router-|discovery|tp$|tp-|dp$|ep$|device$|context-length|"
    r"mem-fraction|max-running|model-path|data-dir|entrypoint|ipc$|install|showpids|socket|version|use-tablespace|"
    r"advertise|drain|cuda-graph-max-bs|enable-dp-attention|language-only|long-bytes|long-path|max-bytes|max-time|"
    r"max-mamba|moe-a2a|mooncake|num-speculative-tokens|speculative-algorithm)"
)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared facts do not lie beside the repository")
def test_every_option_of_the_facts_and_cases_is_known() -> None:
    files = [*SHARED.glob("facts/*_facts.json"), *SHARED.glob("cases/lint/*.yaml"), SHARED / "cases/reports.json"]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    names = {m[0] for m in re.finditer(r"(?<![\w-])--[a-zA-Z][\w-]*(?:\.\w+)*", text)}
    ours = sorted(name for name in names if not _OTHERS.match(name))
    assert len(ours) > 70
    read = [read_arguments([Word(name, "$"), Word("1", "$")], TABLE).given[0] for name in ours]
    assert [a.written for a in read if not a.known] == []


def test_environment_variables_by_release() -> None:
    engine = {name: variable.versions for name, variable in variables().items()}
    version = parse_version("0.33.0")
    for gone in ("VLLM_ENGINE_ITERATION_TIMEOUT_S", "VLLM_NIXL_EP_MAX_NUM_RANKS", "VLLM_TEST_FORCE_FP8_MARLIN"):
        assert engine[gone].contains(version) is False
        assert engine[gone].contains(parse_version("0.27.1")) is True
    for new in ("VLLM_ROCM_USE_AITER_MOE_SITUV2", "VLLM_MOONCAKE_CONNECTOR_TIMEOUT", "VLLM_KIMI_K3_GEMM_AR"):
        assert engine[new].contains(version) is True
        assert engine[new].contains(parse_version("0.27.1")) is False
    assert find_variable("VLLM_NO_SUCH_SWITCH") is None
    assert "VLLM_ROCM_USE_AITER" in near_variables("VLLM_ROCM_USE_AITERR")


def test_the_chain_of_one_renamed_variable() -> None:
    first = find_variable("AITER_SITUV2_A8W4")
    assert first is not None
    second = find_variable(first.instead or "")
    assert second is not None
    assert second.name == "VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4"
    assert second.instead == "VLLM_ROCM_USE_AITER_MOE_SITUV2"


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared facts do not lie beside the repository")
def test_renames_of_the_facts_are_there() -> None:
    renames = json.loads((SHARED / "facts/cuda_facts.json").read_bytes())["env_renames"]
    for name in renames["removed_between_0.27.1_and_0.33.0"]:
        variable = find_variable(name)
        assert variable is not None
        assert variable.versions.contains(parse_version("0.27.1")) is True
        assert variable.versions.contains(parse_version("0.33.0")) is False
    for name in renames["added"]:
        variable = find_variable(name)
        assert variable is not None
        assert variable.versions.contains(parse_version("0.27.1")) is False
        assert variable.versions.contains(parse_version("0.33.0")) is True
