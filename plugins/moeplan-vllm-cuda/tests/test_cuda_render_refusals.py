"""What is not rendered, and why: values that lack, plans and sites that do not fit, what is known to fail."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import attrs
import pytest
from cuda_sites import CASES, DRAFT, Case, objects_of, plan_for, rendering_of, site_for
from moeplan_vllm_cuda.plugin import moeplan_lint
from moeplan_vllm_cuda.rendering.render import render

from moeplan.cli.main import main
from moeplan.errors import InputRefusedError
from moeplan.hooks.plain_data import freeze
from moeplan.manifests.write import dump_yaml
from moeplan.model.rendering import LintRequest, ManifestSource
from moeplan.wire.documents import dump_document

PAIR, NODES, ONE = CASES["pd-cluster"], CASES["multi-node-tep-dspark"], CASES["single-node-tep"]


def refused(case: Case, site: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the codes by path."""
    with pytest.raises(InputRefusedError) as caught:
        render(plan_for(case), freeze(site if site is not None else site_for(case)))
    return {issue.path: issue.code for issue in caught.value.issues}


def without(site: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a site without one value; ``nodes.1.address`` counts from 0."""
    made: dict[str, Any] = json.loads(json.dumps(site))
    place: Any = made
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step)] if step.isdigit() else place[step]
    del place[last]
    return made


@pytest.mark.parametrize(
    ("case", "key", "path"),
    [
        (ONE, "namespace", "$.namespace"),
        (ONE, "servedModelName", "$.servedModelName"),
        (ONE, "modelNames", "$.modelNames.target"),
        (ONE, "images", "$.images.engine"),
        (ONE, "nodes", "$.nodes"),
        (ONE, "nodes.0.modelDirectory", "$.nodes[0].modelDirectory"),
        (NODES, "modelNames.draft", "$.modelNames.draft"),
        (NODES, "network.interface", "$.network.interface"),
        (NODES, "nodes.1.address", "$.nodes[1].address"),
        (PAIR, "images.router", "$.images.router"),
        (PAIR, "network.rdmaDevices", "$.network.rdmaDevices"),
    ],
)
def test_a_value_that_only_the_site_knows_is_named(case: Case, key: str, path: str) -> None:
    assert refused(case, without(site_for(case), key)) == {path: "site_value_missing"}


def test_all_that_lacks_is_named_at_once() -> None:
    site = without(without(site_for(PAIR), "namespace"), "nodes.0.address")
    assert set(refused(PAIR, site)) == {"$.namespace", "$.nodes[0].address"}


@pytest.mark.parametrize(
    ("case", "more", "told"),
    [
        (ONE, {"hardware": "h100"}, {"$.hardware": "site_differs"}),
        (ONE, {"acceleratorsPerNode": 4}, {"$.acceleratorsPerNode": "site_differs"}),
        (ONE, {"profile": "opt/aggregated"}, {"$.profile": "unknown_profile"}),
        (NODES, {"network": {"interface": "^lo"}}, {"$.network.interface": "not_one_interface"}),
        (NODES, {"nodes": site_for(NODES)["nodes"][:1]}, {"$.nodes": "nodes_missing"}),
        (NODES, {"nodes": 2}, {"$.nodes": "site_value_missing"}),
    ],
)
def test_a_site_that_does_not_fit(case: Case, more: dict[str, Any], told: dict[str, str]) -> None:
    assert refused(case, site_for(case, **more)) == told


def test_workers_of_one_template_have_one_directory() -> None:
    case = CASES["multi-node-dep-3"]
    nodes = site_for(case)["nodes"]
    nodes[2]["modelDirectory"] = "/mnt/third"
    assert refused(case, site_for(case, nodes=nodes)) == {"$.nodes[2].modelDirectory": "unlike_workers"}


TP = "$.deployment.parallelism.tensorParallelSize"
PP = "$.deployment.parallelism.pipelineParallelSize"
DP = "$.deployment.parallelism.dataParallelSize"
EP = "$.deployment.parallelism.expertParallelSize"


@pytest.mark.parametrize(
    ("case", "paths"),
    [
        (Case("qwen3-30b-a3b", 16, "single_node_tp"), {"$.target.requestedAccelerators"}),
        (Case("qwen3-30b-a3b", 8, "multi_node_tp"), {"$.target.requestedAccelerators"}),
        (Case("qwen3-30b-a3b", 12, "multi_node_tp"), {"$.target.requestedAccelerators"}),
        (Case("qwen3-30b-a3b", 9, "pd_cluster"), {"$.target.requestedAccelerators"}),
        (Case("qwen3-30b-a3b", 8, "single_node_tp", (4, None, None, None)), {DP}),
        (Case("qwen3-30b-a3b", 8, "single_node_tp", (4, None, 1, None)), {TP}),
        (Case("qwen3-30b-a3b", 8, "single_node_tep", (4, 2, None, None)), {PP}),
        (Case("qwen3-30b-a3b", 8, "single_node_tp", (8, None, None, 8)), {EP}),
        (Case("qwen3-30b-a3b", 8, "single_node_dep", (8, None, None, None)), {DP}),
        (Case("qwen3-30b-a3b", 16, "multi_node_tp_dp", (16, None, 1, None)), {TP}),
    ],
)
def test_sizes_that_are_not_the_profiles(case: Case, paths: set[str]) -> None:
    site = site_for(attrs.evolve(case, devices=max(case.devices, 16)))
    told = refused(case, site)
    assert set(told) == paths
    assert set(told.values()) == {"plan_not_of_profile"}


@pytest.mark.parametrize(("nodes", "codes"), [(32, set()), (33, {"too_many_nodes"})])
def test_a_deployment_has_nodes_that_its_files_hold(nodes: int, codes: set[str]) -> None:
    case = Case("glm-5-2", 8 * nodes, "multi_node_dep")
    site = site_for(case)
    for index, node in enumerate(site["nodes"]):
        node["name"] = f"{index:03}".ljust(63, "n")
    if codes:
        assert set(refused(case, site).values()) == codes
    else:
        assert len(render(plan_for(case), freeze(site)).files) == 4 + 2 * nodes


def test_a_draft_with_pipeline_stages_is_refused() -> None:
    case = attrs.evolve(CASES["multi-node-tp-pp"], drafts=True)
    assert refused(case) == {"$.deployment.draftCheckpointRoot": "draft_with_stages"}
    assert plan_for(case).deployment.draft_checkpoint_root == DRAFT


def test_a_workload_above_the_recipes_values_is_refused() -> None:
    # Five sequences at most: fact C-K3-001.
    assert refused(attrs.evolve(NODES, concurrency=6)) == {"$.workload.concurrency": "workload_too_large"}
    assert rendering_of(attrs.evolve(NODES, concurrency=5)).files


@pytest.mark.parametrize(
    ("case", "codes"),
    [
        (Case("kimi-k3", 8, "single_node_tp"), {"C-MEM-002", "no_room"}),
        (Case("kimi-k3", 16, "multi_node_dep"), {"C-K3-003", "no_room"}),
        (Case("kimi-k3", 32, "pd_cluster", (8, 1, 2, 16)), {"C-PD-019"}),
    ],
)
def test_what_is_known_to_fail_is_rendered_when_it_is_accepted_and_said_first(case: Case, codes: set[str]) -> None:
    assert set(refused(case).values()) == codes
    accepted = [{"id": case.profile, "reason": "a trial"}]
    first = rendering_of(case, acknowledged=accepted).guide[0]
    assert first.title == "Know what speaks against it"
    assert "C-" in first.statement
    for code in codes - {"no_room"}:
        assert f"- {code}: " in first.statement


def test_a_fact_alone_can_be_acknowledged() -> None:
    case = Case("kimi-k3", 32, "pd_cluster", (8, 1, 2, 16))
    assert rendering_of(case, acknowledged=[{"id": "C-PD-019", "reason": "a trial"}]).files
    assert refused(case, site_for(case, acknowledged=[{"id": "C-PD-020", "reason": "another"}]))


def test_what_own_lint_finds_is_refused() -> None:
    # DSpark's first request crashes on a prefill role on Hopper: fact C-SPC-011. The driver: fact C-DRV-001.
    case = attrs.evolve(CASES["pd-cluster-4"], drafts=True)
    site = site_for(case)
    assert set(refused(case, site).values()) == {"C-SPC-011"}
    assert set(refused(ONE, site_for(ONE, driver="550.54")).values()) == {"C-DRV-001"}
    assert set(refused(ONE, site_for(ONE, engineVersion="0.27.1", driver="575")).values()) == {"C-DRV-001"}


def test_a_gpu_of_another_vendor_is_refused() -> None:
    plan = attrs.evolve(plan_for(ONE), target=attrs.evolve(plan_for(ONE).target, hardware_id="mi355x"))
    with pytest.raises(InputRefusedError) as caught:
        render(plan, freeze(site_for(ONE, hardware="mi355x")))
    assert [issue.code for issue in caught.value.issues] == ["not_nvidia"]


def edited(case: Case, old: str, new: str, at: int = 0) -> set[str]:
    """Return what lint finds after one edit in the engines' manifests; the text must be there."""
    files = [file for file in rendering_of(case).files if file.name[0] == "3"]
    assert old in files[at].text, old
    texts = [file.text.replace(old, new) if number == at else file.text for number, file in enumerate(files)]
    sources = tuple(ManifestSource(file.name, text, (0,)) for file, text in zip(files, texts, strict=True))
    found = moeplan_lint(LintRequest(sources, case.profile), freeze(site_for(case)))
    return {one.id for one in found if one.severity != "info"}


def option(name: str, value: str) -> str:
    return f"          - {name}\n          - {value}\n"


def variable(name: str, value: str) -> str:
    return f"          - name: {name}\n            value: {value}\n"


K3 = "multi-node-tep-dspark"
EXPANDABLE = "        - name: PYTORCH_CUDA_ALLOC_CONF\n          value: expandable_segments:True\n"
NGRAM = '        - --speculative-config\n        - \'{"method": "ngram", "num_speculative_tokens": 3}\'\n'


@pytest.mark.parametrize(
    ("fact", "name", "old", "new"),
    [
        ("C-K3-001", K3, option("--moe-backend", "marlin"), ""),
        ("C-K3-001", K3, option("--gpu-memory-utilization", "'0.97'"), option("--gpu-memory-utilization", "'0.90'")),
        ("C-K3-001", K3, option("--max-num-seqs", "'5'"), option("--max-num-seqs", "'8'")),
        ("C-K3-001", K3, "          - --disable-custom-all-reduce\n", ""),
        ("C-K3-001", K3, variable("VLLM_USE_V2_MODEL_RUNNER", "'1'"), ""),
        ("C-K3-001", K3, variable("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"), ""),
        ("C-ATT-012", K3, option("--attention-backend", "FLASHMLA"), ""),
        ("C-ATT-002", K3, option("--attention-backend", "FLASHMLA"), option("--attention-backend", "CUTLASS_MLA")),
        ("C-MOE-001", K3, option("--moe-backend", "marlin"), option("--moe-backend", "flashinfer_trtllm")),
        ("C-SPC-007", K3, variable("VLLM_USE_V2_MODEL_RUNNER", "'1'"), variable("VLLM_USE_V2_MODEL_RUNNER", "'0'")),
        ("C-ENV-007", K3, option("--tool-call-parser", "kimi_k3"), option("--tool-call-parser", "kimi_k2")),
        ("C-NET-001", K3, variable("GLOO_SOCKET_IFNAME", "ens1"), ""),
        ("C-NET-002", K3, variable("GLOO_SOCKET_IFNAME", "ens1"), variable("GLOO_SOCKET_IFNAME", "^lo")),
        (
            "C-NET-005",
            K3,
            option("--distributed-executor-backend", "mp"),
            option("--distributed-executor-backend", "ray"),
        ),
        (
            "C-SPC-001",
            "multi-node-tp-pp",
            "          - --trust-remote-code\n",
            "          - --trust-remote-code\n" + option("--speculative-config", '\'{"method": "mtp"}\''),
        ),
        ("C-NET-011", "multi-node-tp-pp", variable("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "'1800'"), ""),
        (
            "C-NET-012",
            "multi-node-tp-dp",
            option("--data-parallel-address", "$(LWS_LEADER_ADDRESS)"),
            option("--data-parallel-address", "127.0.0.1"),
        ),
    ],
)
def test_one_fault_in_a_group_of_nodes_is_found(fact: str, name: str, old: str, new: str) -> None:
    assert fact in edited(CASES[name], old, new)


@pytest.mark.parametrize(
    ("fact", "name", "old", "new"),
    [
        (
            "C-DS-004",
            "single-node-tep",
            "      - --max-num-seqs\n        - '16'",
            "      - --max-num-seqs\n        - '64'",
        ),
        ("C-ATT-011", "single-node-tep", "        - --block-size\n        - '256'\n", ""),
        ("C-NET-010", "single-node-tep", "          mountPath: /dev/shm\n", "          mountPath: /dev/other\n"),
        ("C-NET-010", "single-node-tep", "          sizeLimit: 32Gi\n", "          sizeLimit: 512Mi\n"),
        ("C-TIM-002", "single-node-tep", "failureThreshold: 390", "failureThreshold: 60"),
        ("C-TIM-002", "single-node-tep", "        startupProbe:", "        otherProbe:"),
        ("C-TIM-001", "single-node-tep", "          value: '3600'", "          value: '900'"),
        ("C-SCH-001", "single-node-tep", "        - '8192'", "        - '8'"),
        ("C-DIV-004", "single-node-tep", "          nvidia.com/gpu: 8", "          nvidia.com/gpu: 4"),
        ("C-PD-001", "pd-cluster", "          value: $(POD_IP)", "          value: 127.0.0.1"),
        ("C-PD-005", "pd-cluster", "          value: rc,cuda_copy", "          value: tcp"),
        ("C-PD-013", "pd-cluster", '"kv_load_failure_policy": "fail"', '"kv_load_failure_policy": "recompute"'),
        ("C-PD-014", "pd-cluster", '"kv_role": "kv_producer"', '"kv_role": "producer"'),
        ("C-PD-004", "pd-cluster", '"kv_role": "kv_producer"', '"kv_role": "kv_both"'),
        (
            "C-PD-006",
            "pd-cluster",
            "        - name: UCX_TLS\n",
            EXPANDABLE + "        - name: UCX_TLS\n",
        ),
        ("C-PD-003", "pd-cluster", "sha256:1a1a", "sha256:2a1a"),
        (
            "C-PD-018",
            "pd-cluster",
            "          privileged: true\n          capabilities:\n            add:\n            - IPC_LOCK\n",
            "",
        ),
        ("C-SPC-009", "pd-cluster", "        - --enforce-eager\n", "        - --enforce-eager\n" + NGRAM),
    ],
)
def test_one_fault_in_a_pod_is_found(fact: str, name: str, old: str, new: str) -> None:
    assert fact in edited(CASES[name], old, new)


def test_the_command_renders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES["pd-cluster"]
    (tmp_path / "plan.json").write_bytes(dump_document(plan_for(case)))
    (tmp_path / "site.yaml").write_text(dump_yaml(site_for(case)))
    words = ["render", str(tmp_path / "plan.json"), "--site", str(tmp_path / "site.yaml"), "-o", str(tmp_path / "out")]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["profile"], told["status"]) == ("pd_cluster", "recipe_only")
    assert len(told["files"]) == len(list((tmp_path / "out").iterdir())) - 1
    assert main([*words, "--diff"]) == 0
    assert len(objects_of(case)) == 13


@pytest.mark.parametrize("case", [CASES["multi-node-tp-pp"], CASES["multi-node-tp-dp-ep"]])
def test_a_directory_may_be_called_anything(case: Case) -> None:
    """The plan says which model it is: Kimi-K3's 0.97 is the recipe's, whatever the directory's name."""
    names = {"target": "snapshots-9f62e4e9"}
    rendering = render(plan_for(case), freeze(site_for(case, modelNames=names)))
    assert any("0.97" in file.text for file in rendering.files)


def test_a_model_too_large_is_refused_whatever_its_directory_is_called() -> None:
    """The recipe asks for 960 GB (facts C-MEM-001); four H200 a role have 564."""
    case = Case("deepseek-v4-pro", 8, "pd_cluster")
    site = site_for(attrs.evolve(case, devices=16), modelNames={"target": "weights"})
    assert set(refused(case, site).values()) == {"C-MEM-001"}


def test_the_guides_request_is_json_whatever_the_served_name_is() -> None:
    name = 'it\'s "K3" \\ $HOME'
    guide = render(plan_for(ONE), freeze(site_for(ONE, servedModelName=name))).guide
    [smoke] = [step for step in guide if step.part == "smoke"]
    [line] = [command for command in smoke.commands if command.startswith("curl")]
    assert json.loads(shlex.split(line)[-1])["model"] == name
