"""What is rendered: goldens, Kubernetes' schemas, the CRDs' shapes, the plugin's own lint, the facts' values.

``MOEPLAN_WRITE_GOLDENS=1`` writes the goldens anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import kubernetes_validate
import pytest
from cuda_sites import CASES, Case, files_of, objects_of, plan_for, rendering_of, set_of, site_for, templates_of
from moeplan_vllm_cuda.gpus import find_gpu
from moeplan_vllm_cuda.plugin import moeplan_lint, moeplan_runtime
from moeplan_vllm_cuda.rendering.options import recipe_layers
from moeplan_vllm_cuda.rendering.render import render

from moeplan.hooks.plain_data import freeze
from moeplan.manifests.yaml_positions import load_manifests
from moeplan.model.rendering import LintRequest, ManifestSource

GOLDENS = Path(__file__).parent / "golden"
SHARED = Path(__file__).resolve().parents[3].parent / "shared"
KUBERNETES = "1.31"
SCHEMAS = json.loads((Path(__file__).parent / "crd_shapes.json").read_bytes())
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.exists(), reason="the shared facts do not lie beside the repository"),
]
every = pytest.mark.parametrize("name", CASES)


@every
def test_goldens(name: str) -> None:
    files = {key: data for key, data in set_of(CASES[name]).files.items() if not key.startswith(("10-", "20-", "man"))}
    folder = GOLDENS / name
    if os.environ.get("MOEPLAN_WRITE_GOLDENS"):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for key, data in files.items():
            (folder / key).write_bytes(data)
    assert sorted(path.name for path in folder.iterdir()) == sorted(files)
    for key, data in files.items():
        assert data.decode() == (folder / key).read_text("utf-8"), f"{folder / key} differs; see the head of this file"


@every
def test_the_same_bytes_each_time(name: str) -> None:
    assert rendering_of(CASES[name]) == rendering_of(CASES[name])
    assert set_of(CASES[name]).files == set_of(CASES[name]).files


@every
def test_objects_are_what_kubernetes_takes(name: str) -> None:
    kinds = set()
    for value in objects_of(CASES[name]):
        kinds.add(value["kind"])
        if value["kind"] in SCHEMAS:
            jsonschema.Draft202012Validator(SCHEMAS[value["kind"]]).validate(value)
        else:
            kubernetes_validate.validate(value, KUBERNETES, strict=True)
    assert kinds >= {"Namespace", "Job", "Service", "PodMonitor", "PrometheusRule"}
    for template in templates_of(CASES[name]).values():
        pods = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "a"}, "template": template}
        kubernetes_validate.validate(pods, KUBERNETES, strict=True)


def test_the_shapes_refuse_what_the_crds_refuse() -> None:
    [lws] = [one for one in objects_of(CASES["multi-node-tp"]) if one["kind"] == "LeaderWorkerSet"]
    shape = jsonschema.Draft202012Validator(SCHEMAS["LeaderWorkerSet"])
    for path, value in (
        (("spec", "leaderWorkerTemplate", "size"), "2"),
        (("spec", "leaderWorkerTemplate", "restartPolicy"), "Always"),
        (("spec", "startupPolicy"), "Now"),
        (("spec", "leaderServicePort"), 8000),
        (("spec", "leaderWorkerTemplate", "podTemplate"), {}),
    ):
        changed = json.loads(json.dumps(lws))
        place = changed
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        assert list(shape.iter_errors(changed)), path


def lint(files: dict[str, str], site: dict[str, Any], profile: str) -> dict[str, str]:
    """Return what counts by id; every object is the plugin's, and scripts are."""
    sources = tuple(
        ManifestSource(
            name, text, tuple(range(len(load_manifests(text.encode()).documents))) if "yaml" in name else None
        )
        for name, text in files.items()
    )
    found = moeplan_lint(LintRequest(sources, profile), freeze(site))
    return {one.id: one.severity for one in found if one.severity != "info"}


@every
def test_own_lint_finds_nothing_in_the_manifests(name: str) -> None:
    case = CASES[name]
    files = {key: data.decode() for key, data in set_of(case).files.items() if key[0] in "12345"}
    assert lint(files, site_for(case), case.profile) == {}


@every
@pytest.mark.parametrize("form", ["docker", "serve"])
def test_own_lint_finds_nothing_in_the_scripts(name: str, form: str) -> None:
    case = CASES[name]
    files = {key: text for key, text in files_of(case).items() if key.startswith(form) and "router" not in key}
    assert len(files) == -(-case.devices // 8)
    assert lint(files, site_for(case), case.profile) == {}


class TestAgainstTheFacts:
    """The recipes' values as another file has them."""

    pytestmark = shared

    @staticmethod
    def facts() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((SHARED / "facts/cuda_facts.json").read_bytes())
        return found

    @pytest.mark.parametrize("name", ["multi-node-tep-dspark", "multi-node-tp-pp", "multi-node-tp-dp-ep"])
    def test_kimi_k3_has_its_hopper_profile(self, name: str) -> None:
        [fact] = [one for one in self.facts()["facts"] if one["id"] == "C-K3-001"]
        for template in templates_of(CASES[name]).values():
            [container] = template["spec"]["containers"]
            command, env = container["command"], env_of(container)
            for option, value in fact["required"].items():
                if option == "env":
                    assert {key: env[key] for key in value} == value
                elif value is True:
                    assert option in command
                else:
                    assert command[command.index(option) + 1] == value

    def test_every_recipe_gives_its_arguments_on_h200(self) -> None:
        left_out = {"--enable-expert-parallel", "--tensor-parallel-size", "--served-model-name", "--tokenizer-mode"}
        left_out |= {"--allowed-local-media-path"}
        gpu = find_gpu("h200")
        assert gpu is not None
        for model, row in self.facts()["models"].items():
            layers = list(recipe_layers(model, gpu))
            given: dict[str, Any] = {}
            env: dict[str, str] = {}
            for layer in layers:
                given |= layer.get("arguments", {})
                env |= layer.get("environment", {})
            hopper = row["hopper"] or {}
            words = [part for one in (row["base_args"] or []) + hopper.get("extra_args", []) for part in one.split()]
            wanted = {word.partition("=")[0] for word in words if word.startswith("-")} - left_out
            assert wanted - set(given) <= {"--max-model-len"} if "auto" in words else wanted <= set(given), model
            assert {**(row["base_env"] or {}), **hopper.get("extra_env", {})}.items() <= env.items(), model
            if row["reasoning"] is not None:
                assert given["--reasoning-parser"] == row["reasoning"][row["reasoning"].index("--reasoning-parser") + 1]


def env_of(container: dict[str, Any]) -> dict[str, str]:
    """Return a container's variables that have a value."""
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


@every
def test_every_engine_has_what_its_pod_needs(name: str) -> None:
    case = CASES[name]
    sited = {node["name"]: node for node in site_for(case)["nodes"]}
    for part, template in templates_of(case).items():
        spec = template["spec"]
        [container] = spec["containers"]
        assert container["command"][:2] == ["vllm", "serve"] or container["command"][2].startswith("exec vllm serve ")
        assert container["resources"]["limits"] == {"nvidia.com/gpu": min(8, case.devices)}
        volumes = {one["name"]: one for one in spec["volumes"]}
        assert volumes["dshm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "32Gi"}
        mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
        assert mounts["/models"] == {"name": "model", "mountPath": "/models", "readOnly": True}
        assert mounts["/dev/shm"]["name"] == "dshm"
        names = pinned_to(spec)
        assert {sited[one]["modelDirectory"] for one in names} == {volumes["model"]["hostPath"]["path"]}
        env = env_of(container)
        assert env["HF_HUB_OFFLINE"] == "1"
        budget = container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"]
        assert budget > int(env["VLLM_ENGINE_READY_TIMEOUT_S"]) >= 1875
        headless = "--headless" in container["command"]
        assert ("httpGet" in container["startupProbe"]) is not headless
        assert ("livenessProbe" in container) is not headless
        if case.devices > 8:
            assert spec["hostNetwork"] is True
            assert env["GLOO_SOCKET_IFNAME"] == env["NCCL_SOCKET_IFNAME"] == "ens1"
            assert container["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"]}
            assert volumes["infiniband"]["hostPath"]["path"] == "/dev/infiniband"
        if part.endswith("/worker"):
            assert headless is not (case.profile == "multi_node_dep")


def pinned_to(spec: dict[str, Any]) -> list[str]:
    """Return the nodes that a pod may stand on."""
    if "nodeSelector" in spec:
        return [spec["nodeSelector"]["kubernetes.io/hostname"]]
    needed = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    values: list[str] = needed["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]
    return values


def test_a_pair_hands_over_and_speaks_alike() -> None:
    roles = templates_of(CASES["pd-cluster"])
    said = {}
    for name, template in roles.items():
        [container] = template["spec"]["containers"]
        command, env = container["command"], env_of(container)
        said[name] = json.loads(command[command.index("--kv-transfer-config") + 1])
        assert said[name]["kv_connector"] == "NixlConnector"
        assert said[name]["kv_load_failure_policy"] == "fail"
        assert (env["VLLM_NIXL_SIDE_CHANNEL_HOST"], env["UCX_TLS"]) == ("$(POD_IP)", "rc,cuda_copy")
        assert env["UCX_NET_DEVICES"] == "mlx5_0:1,mlx5_1:1"
        assert "PYTORCH_CUDA_ALLOC_CONF" not in env
        assert container["env"][0]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert {name: one["kv_role"] for name, one in said.items()} == {
        "qwen3-30b-a3b-prefill": "kv_producer",
        "qwen3-30b-a3b-decode": "kv_consumer",
    }
    [router] = [one for one in objects_of(CASES["pd-cluster"]) if one["metadata"]["name"] == "qwen3-30b-a3b-router"]
    command = router["spec"]["template"]["spec"]["containers"][0]["command"]
    services = {
        one["metadata"]["name"]: one["spec"] for one in objects_of(CASES["pd-cluster"]) if one["kind"] == "Service"
    }
    for role in ("prefill", "decode"):
        host, port = command[command.index(f"--{role}") + 1].removeprefix("http://").split(":")
        [target] = [one for one in services[host]["ports"] if one["port"] == int(port)]
        assert target["targetPort"] == "http"
        labels = roles[f"qwen3-30b-a3b-{role}"]["metadata"]["labels"]
        assert services[host]["selector"].items() <= labels.items()


def test_a_device_plugin_gives_the_devices_without_privilege() -> None:
    case = CASES["pd-cluster"]
    network = {**site_for(case)["network"], "rdmaResource": "rdma/ib"}
    jobs = [one["spec"]["template"] for one in objects_of(case, network=network) if "-node-" in one["metadata"]["name"]]
    for template in (*templates_of(case, network=network).values(), *jobs):
        [container] = template["spec"]["containers"]
        assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
        assert container["resources"]["limits"] == {"nvidia.com/gpu": 8, "rdma/ib": 2}
        assert "infiniband" not in json.dumps(template["spec"]["volumes"])


@every
def test_services_select_engines_that_answer(name: str) -> None:
    templates = list(templates_of(CASES[name]).values())
    routers = [
        one["spec"]["template"] for one in objects_of(CASES[name]) if one["metadata"]["name"].endswith("-router")
    ]
    for service in (one for one in objects_of(CASES[name]) if one["kind"] == "Service"):
        wanted = service["spec"]["selector"].items()
        chosen = [one for one in (*templates, *routers) if wanted <= one["metadata"]["labels"].items()]
        assert chosen
        for template in chosen:
            [container] = template["spec"]["containers"]
            assert [port["name"] for port in container["ports"]] == ["http"]
            assert "--headless" not in container["command"]


@every
def test_arguments_hold_the_workload(name: str) -> None:
    case, plan = CASES[name], plan_for(CASES[name])
    for template in templates_of(case).values():
        command = " ".join(template["spec"]["containers"][0]["command"]).replace(" \\\n ", "").split()
        value = {one: command[at + 1] for at, one in enumerate(command[:-1]) if one.startswith("--")}
        data = int(value.get("--data-parallel-size", 1))
        assert int(value["--max-model-len"]) >= plan.workload.input_tokens + plan.workload.output_tokens
        assert int(value["--max-num-seqs"]) * data >= plan.workload.concurrency
        assert int(value["--max-num-batched-tokens"]) >= int(value["--max-num-seqs"])


def test_the_draft_is_served_downloaded_probed_and_proved() -> None:
    case = CASES["multi-node-tep-dspark"]
    for template in templates_of(case).values():
        command = template["spec"]["containers"][0]["command"]
        config = json.loads(command[command.index("--speculative-config") + 1])
        assert (config["method"], config["model"]) == ("dspark", "/models/Kimi-K3-speculator.dspark")
        assert config["num_speculative_tokens"] == 8
    probes = [one for one in objects_of(case) if "-storage-" in one["metadata"]["name"]]
    assert len(probes) == 2
    for probe in probes:
        assert env_of(probe["spec"]["template"]["spec"]["containers"][0])["DRAFT"] == "Kimi-K3-speculator.dspark"
    guide = set_of(case).files["README.md"].decode()
    assert (
        "hf download RedHatAI/Kimi-K3-speculator.dspark --local-dir /mnt/array/models/Kimi-K3-speculator.dspark"
        in guide
    )
    assert "sha256:" + "3c" * 32 in guide
    assert "grep -c 'running the draft eagerly'" in guide


def test_the_guide_says_what_placement_says() -> None:
    # 101.71 GiB and 771,840 tokens: sharding notes, section 7 (TP16 + EP16 on 16 H200 101.7 GiB of 139.8).
    guide = set_of(CASES["multi-node-tep-dspark"]).files["README.md"].decode()
    assert "weights 101.8 GiB (calculated) of a budget of 135.7 GiB (calculated)" in guide
    pipeline = set_of(CASES["multi-node-tp-pp"]).files["README.md"].decode()
    assert "TP 8, PP 2, DP 1" in pipeline
    replicas = set_of(CASES["multi-node-tp-dp"]).files["README.md"].decode()
    assert "nothing is left for the KV cache" in replicas.split("## Before anything")[1][:800]
    assert "the recipe calls tensor parallel 8 with data parallel 2 on two nodes validated" in replicas


def test_the_rule_is_made_from_the_criteria() -> None:
    [rule] = [one for one in objects_of(CASES["pd-cluster"]) if one["kind"] == "PrometheusRule"]
    alerts = {one["alert"]: one["expr"] for one in rule["spec"]["groups"][0]["rules"]}
    assert alerts["TimeToFirstTokenAboveLimit"].endswith("> 1")
    assert alerts["InterTokenLatencyAboveLimit"].endswith("> 0.05")
    assert 'pod=~"qwen3-30b-a3b-decode-.*"' in alerts["KvHandoffFailsOpen"]


def test_the_page_says_what_placement_says_of_kimi_k3() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/render.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.split("\n") if line.startswith("| TP ")
    ]
    cases = {
        "TP 16": Case("kimi-k3", 16, "multi_node_tp"),
        "TP 16, EP 16": Case("kimi-k3", 16, "multi_node_tep"),
        "TP 8, PP 2, no draft": CASES["multi-node-tp-pp"],
        "TP 8, DP 2": CASES["multi-node-tp-dp"],
        "TP 8, DP 2, EP 16": CASES["multi-node-tp-dp-ep"],
    }
    assert [row[0] for row in rows] == list(cases)
    for layout, profile, weights, tokens, requests in rows:
        case = cases[layout]
        assert profile == f"`{case.profile}`"
        [told] = [step.statement for step in rendering_of(case).guide if step.title == "Know what placement says"]
        assert f"weights {weights} (" in told
        assert f"{0 if tokens == 'nothing is left' else tokens} (estimated) tokens" in told
        assert f"that is {requests} (estimated) requests of 5120 tokens" in told


@pytest.mark.parametrize("profile", sorted({case.profile for case in CASES.values()}))
def test_a_filled_template_of_the_site_renders(profile: str) -> None:
    case = attrs.evolve(next(case for case in CASES.values() if case.profile == profile), drafts=False)
    known = next(one for one in moeplan_runtime().profiles if one.id == profile)
    wanted = {need.key for need in known.site_needs if need.required} | {"modelNames.target", "nodes[].modelDirectory"}
    site = site_for(case)
    given = {key: site[key] for key in ("profile", "runtime")}
    for key in wanted:
        first, _, rest = key.partition(".")
        name = first.removesuffix("[]")
        if not rest:
            given[name] = site[name]
        elif name == "nodes":
            rows = given.setdefault("nodes", [{"name": node["name"], "roles": node["roles"]} for node in site["nodes"]])
            for row, node in zip(rows, site["nodes"], strict=True):
                row[rest] = node[rest]
        else:
            given.setdefault(name, {})[rest] = site[name][rest]
    assert render(plan_for(case), freeze(given)).files
