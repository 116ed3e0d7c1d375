"""What is rendered: against the recipes' own values, the CRD, Kubernetes' schemas, the plugin's lint, and goldens.

``MOEPLAN_WRITE_GOLDENS=1`` writes the goldens anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from moeplan_vllm_rocm_aiter.combos import combos
from moeplan_vllm_rocm_aiter.linting import lint
from moeplan_vllm_rocm_aiter.plugin import moeplan_runtime
from moeplan_vllm_rocm_aiter.render import render
from rendered_sites import (
    PROFILES,
    SHARED,
    env_of,
    flags_of,
    objects_of,
    plan_for,
    rendering_of,
    services_of,
    set_of,
    site_for,
)

from moeplan.catalogue.registries import load_registry
from moeplan.errors import InputError, InputRefusedError
from moeplan.hooks.plain_data import freeze
from moeplan.manifests.yaml_positions import load_manifests
from moeplan.model.deployment import DeploymentSpec, Parallelism, RoleSpec
from moeplan.model.plan import Scenario
from moeplan.model.rendering import LintRequest, ManifestSource
from moeplan.planning.builder import plan as make_plan
from moeplan.site.reading import load_site, parse_site_text, site_values
from moeplan.site.template import site_template

GOLDENS = Path(__file__).parent / "golden"
PAIRS = tuple(profile for profile in PROFILES if "disaggregated" in profile)
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.exists(), reason="the shared facts do not lie beside the repository"),
]


def recipe(profile: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SHARED / "facts/rocm_facts.json").read_bytes())["combos"][profile]
    return found


@pytest.mark.parametrize("profile", PROFILES)
def test_goldens(profile: str) -> None:
    files = set_of(profile).files
    for name in ("30-deployment.yaml", "40-monitoring.yaml", "README.md"):
        path = GOLDENS / profile.replace("/", "-") / name
        if os.environ.get("MOEPLAN_WRITE_GOLDENS"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[name])
        assert files[name].decode() == path.read_text("utf-8"), f"{path} differs; see the head of this file"


@pytest.mark.parametrize("profile", PROFILES)
def test_the_same_bytes_each_time(profile: str) -> None:
    assert rendering_of(profile) == rendering_of(profile)
    assert list(set_of(profile).files) == [
        "10-namespace.yaml",
        "20-probe-storage.yaml",
        "21-probe-node.yaml",
        "30-deployment.yaml",
        "40-monitoring.yaml",
        "kustomization.yaml",
        "README.md",
        "manifest-set.json",
    ]


_MENDED_ENV = {
    "stock": {"VLLM_USE_BREAKABLE_CUDAGRAPH": "0", "HSA_NO_SCRATCH_RECLAIM": "1", "INFERA_ENGINE_READY_TIMEOUT": "7200"}
}
"""What ours have and the stock recipes lack: facts R-ENV-023, R-ENV-025 and R-TIME-001."""


@pytest.mark.parametrize("profile", PROFILES)
class TestAgainstTheRecipe:
    """Every argument, variable, mount, probe and resource of the recipe is there, with its value."""

    pytestmark = shared

    def test_services_and_roles(self, profile: str) -> None:
        told, ours = recipe(profile)["services"], services_of(profile)
        assert list(ours) == list(told)
        for name, service in told.items():
            for key in ("componentType", "role", "replicas"):
                assert ours[name].get(key) == service.get(key), (name, key)
            if "port" in service:
                assert ours[name]["port"] == service["port"]

    def test_commands(self, profile: str) -> None:
        for name, service in recipe(profile)["services"].items():
            [wanted], container = service["containers"], main(profile, name)
            entry = wanted["entry"]
            assert container["command"][:4] == [entry["wrapper"], "python3", "-m", entry["module"]]
            assert flags_of(container) == entry["flags"], name
            assert (container["image"], container["imagePullPolicy"]) == (wanted["image"], wanted["imagePullPolicy"])

    def test_environment(self, profile: str) -> None:
        more = _MENDED_ENV.get(profile.split("/")[0], {})
        for name, service in recipe(profile)["services"].items():
            wanted = service["containers"][0]["env"]
            assert env_of(main(profile, name)) == wanted | ({} if name == "server" else more), name

    def test_resources_and_privileges(self, profile: str) -> None:
        for name, service in recipe(profile)["services"].items():
            [wanted], container = service["containers"], main(profile, name)
            assert container["resources"] == wanted["resources"]
            assert container.get("securityContext") == wanted.get("securityContext")
            spec = services_of(profile)[name]["extraPodSpec"]
            for key in ("hostNetwork", "dnsPolicy"):
                assert spec.get(key) == service.get(key), (name, key)

    def test_probes(self, profile: str) -> None:
        for name, service in recipe(profile)["services"].items():
            wanted, got = service["containers"][0].get("startupProbe"), main(profile, name).get("startupProbe")
            if wanted is not None:
                # The stock recipes give 1200 s, less than a start may take: ours give what the optimized ones do.
                assert got == wanted | {"failureThreshold": 300}
            else:
                assert got is None
            assert "livenessProbe" not in main(profile, name)

    def test_mounts_and_volumes(self, profile: str) -> None:
        for name, service in recipe(profile)["services"].items():
            wanted = {mount["name"]: mount for mount in service["containers"][0]["volumeMounts"]}
            if profile == "stock/disaggregated" and name != "server":
                wanted["ib"] = {"name": "ib", "mountPath": "/dev/infiniband"}  # declared there and not mounted
            got = {mount["name"]: mount for mount in main(profile, name)["volumeMounts"]}
            assert got == wanted, name
            volumes = {volume["name"]: volume for volume in services_of(profile)[name]["extraPodSpec"]["volumes"]}
            assert set(volumes) == set(got), "what is declared is mounted"
            for volume in service["volumes"]:
                if volume["name"] != "model":
                    assert volumes[volume["name"]] == volume

    def test_names_of_the_deployment_and_the_rest(self, profile: str) -> None:
        wanted = recipe(profile)
        [found] = [one for one in objects_of(profile) if one["kind"] == "InferaDeployment"]
        assert found["metadata"]["name"] == wanted["deployment_name"]
        assert found["metadata"]["namespace"] == wanted["namespace"]
        for key in ("backendFramework", "discoveryBackend", "nats"):
            assert found["spec"][key] == wanted[key]
        for name, service in wanted["services"].items():
            got = services_of(profile)[name]["extraPodSpec"]["initContainers"]
            assert [{k: one[k] for k in ("name", "image", "command")} for one in got] == service["initContainers"]


def main(profile: str, service: str, **more: Any) -> dict[str, Any]:
    [found] = services_of(profile, **more)[service]["extraPodSpec"]["containers"]
    assert found["name"] == "main"
    container: dict[str, Any] = found
    return container


@pytest.mark.parametrize("profile", PROFILES)
def test_each_pod_is_on_its_node_and_mounts_that_nodes_directory(profile: str) -> None:
    services = services_of(profile)
    nodes = {
        name: (one["extraPodSpec"]["nodeSelector"]["kubernetes.io/hostname"], model_path(one))
        for name, one in services.items()
    }
    first, second = ("gpu-a", "/mnt/nvme/models"), ("gpu-b", "/mnt/array/models")
    wanted = {"server": first, "prefill": first, "decode": second} if profile in PAIRS else {}
    assert nodes == (wanted or {"server": first, "worker": first})


def model_path(service: dict[str, Any]) -> str:
    [found] = [one["hostPath"]["path"] for one in service["extraPodSpec"]["volumes"] if one["name"] == "model"]
    return str(found)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="the shared facts do not lie beside the repository")
@pytest.mark.parametrize("profile", PROFILES)
def test_inferadeployments_are_valid_by_the_crd(profile: str) -> None:
    schema = closed(json.loads((SHARED / "facts/inferadeployment-crd.json").read_bytes())["openAPIV3Schema"])
    validator = jsonschema.Draft202012Validator(schema)
    value = yaml.safe_load(set_of(profile).files["30-deployment.yaml"])
    assert list(validator.iter_errors(value)) == []
    value["spec"]["services"]["server"]["extraPodSpec"]["nodeSelectors"] = {}
    value["spec"]["discoveryBackend"] = "consul"
    assert {error.validator for error in validator.iter_errors(value)} == {"additionalProperties", "enum"}


def closed(schema: Any) -> Any:
    """Return a CRD's schema as JSON Schema: other keys are refused, as the API server drops them."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items()}
    if made.pop("x-kubernetes-int-or-string", False):
        made = {"type": ["integer", "string"]}
    if isinstance(made.get("properties"), dict) and "metadata" not in made["properties"]:
        made.setdefault("additionalProperties", False)
    return made


@pytest.mark.parametrize("version", ["1.28", "1.37"])
@pytest.mark.parametrize("profile", PROFILES)
def test_namespace_jobs_and_pods_are_valid_by_kubernetes_schemas(profile: str, version: str) -> None:
    kinds = []
    for name, data in set_of(profile).files.items():
        if not name.endswith(".yaml") or name == "kustomization.yaml":
            continue
        for value in yaml.safe_load_all(data):
            kinds.append(value["kind"])
            if value["kind"] in ("Namespace", "Job"):
                kubernetes_validate.validate(value, version, strict=True)
            if value["kind"] == "InferaDeployment":
                for service in value["spec"]["services"].values():
                    kubernetes_validate.validate(pod(service["extraPodSpec"]), version, strict=True)
    assert set(kinds) == {"Namespace", "Job", "InferaDeployment", "PodMonitor", "PrometheusRule"}


def test_the_schemas_refuse_what_is_wrong() -> None:
    [job, *_] = [one for one in objects_of("opt/aggregated") if one["kind"] == "Job"]
    job["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.28", strict=True)


def pod(spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec}


@pytest.mark.parametrize("named", [True, False], ids=["profile", "recognised"])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_plugins_own_lint_finds_nothing(profile: str, named: bool) -> None:
    sources = []
    for name, data in set_of(profile).files.items():
        if name[0].isdigit():
            numbers = tuple(range(len(load_manifests(data).documents)))
            sources.append(ManifestSource(name, data.decode(), numbers))
    found = lint(LintRequest(tuple(sources), profile if named else None), freeze(site_for(profile)))
    assert [(one.id, one.severity) for one in found if one.severity != "info"] == []


def refused(profile: str, **more: Any) -> dict[str, str]:
    with pytest.raises(InputRefusedError) as caught:
        rendering_of(profile, **more)
    return {issue.path: issue.code for issue in caught.value.issues}


_NODE = {"name": "gpu-a", "roles": ["prefill"], "modelDirectory": "/m"}
_OTHER = {"name": "gpu-b", "roles": ["decode"], "modelDirectory": "/m"}


@pytest.mark.parametrize(
    ("profile", "more", "wanted"),
    [
        ("opt/disaggregated", {"nodes": 2}, {"$.nodes": "site_value_missing"}),
        ("opt/disaggregated", {"nodes": [_NODE]}, {"$.nodes": "no_one_node"}),
        ("opt/disaggregated", {"nodes": [_NODE, _OTHER, _OTHER | {"name": "c"}]}, {"$.nodes": "no_one_node"}),
        ("opt/disaggregated", {"nodes": [_NODE | {"roles": ["prefill", "decode"]}]}, {"$.nodes": "no_one_node"}),
        (
            "opt/disaggregated",
            {"nodes": [_NODE, {"name": "gpu-b", "roles": ["decode"]}]},
            {"$.nodes[1].modelDirectory": "site_value_missing"},
        ),
        ("opt/disaggregated", {"nodes": [_NODE | {"gidIndex": 0}, _OTHER]}, {"$.nodes[0].gidIndex": "refused_value"}),
        ("opt/disaggregated", {"network": {"gidIndex": 0}}, {"$.network.gidIndex": "refused_value"}),
        (
            "opt/aggregated",
            {"nodes": [_NODE | {"roles": ["any"], "name": "n" * 64}]},
            {"$.nodes[0].name": "refused_value"},
        ),
        ("opt/aggregated", {"hardware": "h200"}, {"$.hardware": "refused_value"}),
        ("opt/aggregated", {"acceleratorsPerNode": 4}, {"$.acceleratorsPerNode": "refused_value"}),
        ("opt/aggregated", {"ports": {"metrics": 1}}, {"$.ports.metrics": "refused_value"}),
        (
            "opt/aggregated",
            {"kubernetes": {"serviceAccount": "mine"}},
            {"$.kubernetes.serviceAccount": "refused_value"},
        ),
    ],
)
def test_what_cannot_be_rendered_is_named_by_its_key(
    profile: str, more: dict[str, Any], wanted: dict[str, str]
) -> None:
    assert refused(profile, **more) == wanted


def test_what_check_calls_an_error_is_refused_until_it_is_acknowledged() -> None:
    """A network file system is one (fact R-WT-003)."""
    node = _NODE | {"roles": ["serve"], "storage": {"filesystem": "nfs4", "local": False}}
    assert refused("opt/aggregated", nodes=[node]) == {"site: $.nodes[0].storage": "R-WT-003"}
    known = [{"id": "R-WT-003", "reason": "a drill"}]
    assert rendering_of("opt/aggregated", nodes=[node], acknowledged=known).files


def test_a_long_name_of_the_models_directory_is_rendered() -> None:
    """A file's name has up to 255 bytes, a step's title 200 characters."""
    made = rendering_of("opt/aggregated-dspark", modelNames={"target": "x" * 255, "draft": "y" * 255})
    assert max(len(step.title) for step in made.guide) <= 200


@pytest.mark.parametrize("profile", [*combos()["notRendered"], "other"])
def test_a_profile_that_is_not_rendered_says_why(profile: str) -> None:
    with pytest.raises(InputRefusedError) as caught:
        render(plan_for("opt/aggregated"), freeze(site_for("opt/aggregated") | {"profile": profile}))
    [issue] = caught.value.issues
    assert (issue.path, issue.code) == ("$.profile", "profile_not_rendered")
    assert issue.message == combos()["notRendered"].get(profile, "it is none of this plugin's profiles")


def test_a_site_without_namespace_and_nodes_names_both() -> None:
    site = {key: value for key, value in site_for("opt/aggregated").items() if key not in ("namespace", "nodes")}
    with pytest.raises(InputRefusedError) as caught:
        render(plan_for("opt/aggregated"), freeze(site))
    assert {issue.path for issue in caught.value.issues} == {"$.namespace", "$.nodes"}


@pytest.mark.parametrize(
    ("scenario", "wanted"),
    [
        (Scenario("kimi-k3", "h200", 8), "plan: $.target.hardwareId"),
        (Scenario("kimi-k3", "mi355x", 16), "plan: $.target.requestedAccelerators"),
        (
            Scenario(
                "kimi-k3",
                "mi355x",
                8,
                deployment=DeploymentSpec(
                    None, Parallelism(4, None, None, None), None, None, (RoleSpec("serve", None),)
                ),
            ),
            "plan: $.deployment.parallelism.tensorParallelSize",
        ),
    ],
)
def test_a_plan_for_something_else_is_refused(scenario: Scenario, wanted: str) -> None:
    with pytest.raises(InputRefusedError) as caught:
        render(make_plan(load_registry(), scenario), freeze(site_for("opt/aggregated")))
    assert [issue.path for issue in caught.value.issues] == [wanted]


def test_what_the_site_knows_is_in_the_files() -> None:
    digest = "sha256:" + "c" * 64
    images = {"engine": f"mine/engine@{digest}", "overlay": f"mine/overlay@{digest}", "server": f"mine/server@{digest}"}
    more: dict[str, Any] = {
        "images": images,
        "modelNames": {"target": "K3", "draft": "K3-draft"},
        "servedModelName": "k3",
        "ports": {"server": 8080, "engine": 21000},
        "tolerations": [{"key": "amd.com/gpu", "operator": "Exists"}],
        "imagePullSecrets": ["registry-login"],
        "kubernetes": {"runtimeClass": "amd"},
        "network": {"gidIndex": 3, "rdmaLibrary": "/opt/ionic/libionic.so.1"},
        "acknowledged": [{"id": "R-IMG-001", "reason": "built here"}, {"id": "R-IMG-003", "reason": "built here"}],
        "expectedReadySeconds": 6000,
    }
    profile = "opt/disaggregated-dspark"
    decode, server = main(profile, "decode", **more), main(profile, "server", **more)
    flags = flags_of(decode)
    assert (decode["image"], server["image"]) == (images["engine"], images["server"])
    assert (flags["--model"], flags["--served-model-name"], flags["--port"]) == ("/models/K3", "k3", "21000")
    assert flags["--speculative-config"]["model"] == "/models/K3-draft"
    assert flags_of(server)["--router-tokenizer-path"] == "/models/K3"
    assert env_of(decode)["MC_GID_INDEX"] == "3"
    assert decode["startupProbe"]["httpGet"]["port"] == 21000
    # A quarter more than expected: 7500 s are 750 tries of 10 s.
    assert decode["startupProbe"]["failureThreshold"] == 750
    assert env_of(decode)["INFERA_ENGINE_READY_TIMEOUT"] == "7500"
    service = services_of(profile, **more)["decode"]
    spec = service["extraPodSpec"]
    assert service["port"] == 21000
    assert spec["tolerations"] == more["tolerations"]
    assert spec["imagePullSecrets"] == [{"name": "registry-login"}]
    assert spec["runtimeClassName"] == "amd"
    assert spec["initContainers"][0]["image"] == images["overlay"]
    library = {"name": "host-libionic", "hostPath": {"path": "/opt/ionic/libionic.so.1", "type": "File"}}
    assert library in spec["volumes"]
    jobs = [one for one in objects_of(profile, **more) if one["kind"] == "Job"]
    assert len(jobs) == 4
    assert all(one["spec"]["template"]["spec"]["tolerations"] == more["tolerations"] for one in jobs)


def test_a_nodes_own_gid_index_stands_before_the_networks() -> None:
    nodes = [_NODE | {"gidIndex": 1}, _OTHER]
    more = {"nodes": nodes, "network": {"gidIndex": 3}}
    got = {name: env_of(main("opt/disaggregated", name, **more))["MC_GID_INDEX"] for name in ("prefill", "decode")}
    assert got == {"prefill": "1", "decode": "3"}
    assert "MC_GID_INDEX" not in env_of(main("opt/aggregated", "worker", network={"gidIndex": 3}))


@pytest.mark.parametrize("profile", PROFILES)
def test_monitoring_asks_the_pods_that_the_operator_makes(profile: str) -> None:
    found = {one["kind"]: one for one in objects_of(profile)}
    name = found["InferaDeployment"]["metadata"]["name"]
    spec = found["PodMonitor"]["spec"]
    assert spec["selector"]["matchLabels"] == {"infera.amd.com/deployment": name}
    assert set(spec["selector"]["matchExpressions"][0]["values"]) == set(services_of(profile)) - {"server"}
    [endpoint] = spec["podMetricsEndpoints"]
    ports = {one["name"] for service in set(services_of(profile)) for one in main(profile, service)["ports"]}
    assert ports == {endpoint["port"]}
    rules = {one["alert"]: one["expr"] for one in found["PrometheusRule"]["spec"]["groups"][0]["rules"]}
    assert ("KvHandoffFailsOpen" in rules) == (profile in PAIRS)
    assert f'pod=~"{name}-' in rules["TimeToFirstTokenAboveLimit"]


@pytest.mark.parametrize("profile", PROFILES)
def test_the_guide_names_what_proves_each_feature(profile: str) -> None:
    text = set_of(profile).files["README.md"].decode()
    speculates = profile.endswith("dspark")
    assert ("running the draft eagerly" in text) == speculates
    assert ("hf download Inferact/Kimi-K3-DSpark" in text) == speculates
    assert ("External prefix cache hit rate" in text) == (profile in PAIRS)
    assert "hf download moonshotai/Kimi-K3 --revision 9f62e4e9fffbd0a83ddd60e1c209d828994b3569" in text
    assert '"max_tokens": 1024' in text
    assert "--max-time 300" in text
    for file in ("10-namespace.yaml", "20-probe-storage.yaml", "21-probe-node.yaml", "30-deployment.yaml"):
        assert f"kubectl apply -f {file}" in text
    assert text.index("10-namespace.yaml") < text.index("21-probe-node.yaml") < text.index("30-deployment.yaml")


def test_every_profile_is_rendered_or_it_is_said_why() -> None:
    assert {one.id for one in moeplan_runtime().profiles} == {*PROFILES, *combos()["notRendered"]}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_site_that_is_begun_and_filled_in_can_be_rendered(profile: str) -> None:
    [known] = [one for one in moeplan_runtime().profiles if one.id == profile]
    text = site_template("vllm-rocm-aiter", known)
    with pytest.raises(InputError) as caught:
        load_site(text.encode())
    unfilled = {issue.path for issue in caught.value.issues}
    nodes = {f"$.nodes[{at}].{key}" for at in range(len(known_roles(profile))) for key in ("name", "modelDirectory")}
    assert nodes <= unfilled
    values = parse_site_text(text.encode())
    for at, node in enumerate(values["nodes"]):
        node |= {"name": f"gpu-{at}", "modelDirectory": "/mnt/models", "storage": {"filesystem": "xfs", "local": True}}
    values |= {"driver": "6.16.6", "engineVersion": "0.27.1"}
    del values["prices"]
    site = load_site(json.dumps(values).encode())
    made = render(plan_for(profile), freeze(site_values(site)))
    [deployment] = [one.text for one in made.files if one.name == "30-deployment.yaml"]
    defaults = rendering_of(profile).files[3].text
    assert deployment == defaults.replace("gpu-a", "gpu-0").replace("gpu-b", "gpu-1").replace(
        "/mnt/nvme/models", "/mnt/models"
    ).replace("/mnt/array/models", "/mnt/models")


def known_roles(profile: str) -> tuple[str, ...]:
    return ("prefill", "decode") if profile in PAIRS else ("serve",)
