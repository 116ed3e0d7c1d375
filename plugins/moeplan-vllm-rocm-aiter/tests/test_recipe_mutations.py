"""One fact broken at a time in the recipes' manifests: its id is told, and nothing else but what breaks with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from recipe_manifests import FACTS, SITE, Recipe, faults, handed, repaired, told

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not FACTS.exists(), reason="the shared facts do not lie beside the repository"),
]
Change = Callable[[Recipe], Any]
_DSPARK = "opt/disaggregated-dspark"
_PAIR = "opt/disaggregated"
_ONE = "opt/aggregated"
_DRAFT = "opt/aggregated-dspark"
_STOCK = "stock/aggregated"
_KVD = "stock/aggregated-kvd"
_SGLANG = "stock/disaggregated-sglang"
_OLD_IMAGE = "johnqin2025/kimi-k3-dspark:1.1.0-mi355x-rocm7.2.3-20260801@sha256:" + "0" * 64
_BLOCK = {
    "VLLM_ROCM_USE_AITER": "1",
    "VLLM_ROCM_USE_AITER_FP4BMM": "1",
    "AITER_SITUV2_A8W4": "1",
    "AITER_BF16_FP8_MOE_BOUND": "0",
    "HIP_FORCE_DEV_KERNARG": "1",
    "HSA_NO_SCRATCH_RECLAIM": "1",
    "HSA_ENABLE_IPC_MODE_LEGACY": "1",
    "SAFETENSORS_FAST_GPU": "1",
    "VLLM_USE_BREAKABLE_CUDAGRAPH": "0",
    "VLLM_ENABLE_K3_LATENT_MOE_TAIL_FUSION": "1",
    "VLLM_ROCM_USE_KIMI_K3_PREROUTE_FP8": "1",
    "VLLM_ROCM_USE_KIMI_K3_LATENT_TAIL_FP8": "1",
    "KIMI_K3_DUAL_PROJ_FP8_WEIGHT_CACHE_MODIFIER": "2",
    "KIMI_K3_SHARED_DOWN_FP8_WEIGHT_CACHE_MODIFIER": "2",
}


def _flag(name: str, value: Any, *services: str) -> Change:
    def change(recipe: Recipe) -> None:
        for service in services or recipe.engines:
            if value is None:
                recipe.flags(service).pop(name)
            else:
                recipe.flags(service)[name] = value

    return change


def _env(name: str, value: Any, *services: str) -> Change:
    def change(recipe: Recipe) -> None:
        for service in services or recipe.engines:
            if value is None:
                recipe.env(service).pop(name)
            else:
                recipe.env(service)[name] = value

    return change


def _json(flag: str, key: str, value: Any, *services: str) -> Change:
    def change(recipe: Recipe) -> None:
        for service in services or recipe.engines:
            if value is None:
                recipe.flags(service)[flag].pop(key)
            else:
                recipe.flags(service)[flag][key] = value

    return change


def _service(key: str, value: Any, *services: str) -> Change:
    def change(recipe: Recipe) -> None:
        for service in services or recipe.engines:
            if value is None:
                recipe.services[service].pop(key)
            else:
                recipe.services[service][key] = value

    return change


def _in_container(path: str, value: Any, *services: str, container: str = "main") -> Change:
    *above, last = path.split("/")

    def change(recipe: Recipe) -> None:
        for service in services or recipe.engines:
            place: Any = recipe.container(service, container)
            for step in above:
                place = place[step]
            if value is None:
                place.pop(last)
            else:
                place[last] = value

    return change


def _image(reference: str, *services: str) -> Change:
    return _in_container("image", reference, *services)


def _pin(node: str | None, *services: str) -> Change:
    return _service("nodeSelector", None if node is None else {"kubernetes.io/hostname": node}, *services)


def _directory(path: str, *services: str) -> Change:
    def change(recipe: Recipe) -> None:
        for service in services:
            recipe.volume(service, "model")["hostPath"]["path"] = path

    return change


def _spec(**values: Any) -> Change:
    return lambda recipe: recipe.spec.update(values)


def _name(name: Any) -> Change:
    return lambda recipe: setattr(recipe, "name", name)


def _without(volume: str, *services: str) -> Change:
    def change(recipe: Recipe) -> None:
        for service in services or recipe.engines:
            recipe.unmount(service, volume)

    return change


def _unmounted(volume: str, service: str) -> Change:
    def change(recipe: Recipe) -> None:
        mounts = recipe.container(service)["volumeMounts"]
        mounts[:] = [one for one in mounts if one["name"] != volume]

    return change


def _shm(size: str, *services: str) -> Change:
    def change(recipe: Recipe) -> None:
        for service in services or recipe.engines:
            recipe.volume(service, "dshm")["emptyDir"]["sizeLimit"] = size

    return change


def _resource(key: str, value: Any, *halves: str, service: str | None = None) -> Change:
    def change(recipe: Recipe) -> None:
        for name in [service] if service else recipe.engines:
            for half in halves or ("requests", "limits"):
                recipe.container(name)["resources"][half][key] = value

    return change


def _overlay(digest: str) -> Change:
    def change(recipe: Recipe) -> None:
        recipe.services["server"]["initContainers"][0]["image"] = f"inferaimage/infera-overlay@sha256:{digest * 64}"

    return change


def _no_wrapper(recipe: Recipe) -> None:
    recipe.container("worker")["entry"]["wrapper"] = None


def _liveness_alone(recipe: Recipe) -> None:
    main = recipe.container("worker")
    main["livenessProbe"] = main.pop("startupProbe")


def _swapped(recipe: Recipe) -> None:
    recipe.services["prefill"]["role"], recipe.services["decode"]["role"] = "decode", "prefill"


def _nodes_swapped(recipe: Recipe) -> None:
    _pin("gpu-node-b", "prefill")(recipe)
    _pin("gpu-node-a", "decode")(recipe)


def _late_address(recipe: Recipe) -> None:
    env = recipe.env("worker")
    address = env.pop("POD_IP")
    env |= {"VLLM_HOST_IP": "$(POD_IP)", "POD_IP": address}


def _flat(key: str, value: Any) -> Change:
    return lambda recipe: recipe.services["worker"].update(flat={key: value})


def _kvd_memory(recipe: Recipe) -> None:
    for half in ("requests", "limits"):
        recipe.container("worker", "kvd")["resources"][half]["memory"] = "32Gi"


def _kvd_pins_nothing(recipe: Recipe) -> None:
    recipe.container("worker", "kvd").pop("securityContext")


def _kvd_races(recipe: Recipe) -> None:
    service = recipe.services["worker"]
    daemon = recipe.container("worker", "kvd")
    service["initContainers"].remove(daemon)
    daemon.pop("restartPolicy")
    service["containers"].append(daemon)


def _small_claim(recipe: Recipe) -> None:
    recipe.others[0]["spec"]["resources"]["requests"]["storage"] = "64Gi"


def _single_claim(recipe: Recipe) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Ti"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "model-cache"}, "spec": spec}
    recipe.others.append(claim)


def _shared_claim(recipe: Recipe) -> None:
    for name in recipe.engines:
        volume = recipe.volume(name, "model")
        volume.pop("hostPath")
        volume["persistentVolumeClaim"] = {"claimName": "weights"}


def _elsewhere(recipe: Recipe) -> None:
    mounts = recipe.container("worker")["volumeMounts"]
    next(one for one in mounts if one["name"] == "model")["mountPath"] = "/data"


def _two_prefills(recipe: Recipe) -> None:
    recipe.services["decode"]["role"] = "prefill"
    recipe.flags("decode")["--kv-transfer-config"]["kv_role"] = "kv_producer"


def _no_server(recipe: Recipe) -> None:
    recipe.services.pop("server")


def _renamed(recipe: Recipe) -> None:
    recipe.container("worker")["name"] = "engine"


def _key(recipe: Recipe) -> None:
    recipe.services["Worker_1"] = recipe.services.pop("worker")


def _typo(recipe: Recipe) -> None:
    recipe.services["worker"]["nodeselector"] = recipe.services["worker"].pop("nodeSelector")


def _both(*changes: Change) -> Change:
    return lambda recipe: [change(recipe) for change in changes]


_SPEC = "--speculative-config"
_KV = "--kv-transfer-config"
_CHANGES: list[tuple[str, str, Change, set[str]]] = [
    *[("R-ENV-" + name, _ONE, _env(name, None), {"R-ENV-001"}) for name in _BLOCK],
    *[("R-ENV-" + name, _PAIR, _env(name, "7", "decode"), {"R-ENV-020"}) for name in _BLOCK],
    ("R-ENV-001", _DSPARK, _env("VLLM_ROCM_USE_AITER", None, "prefill"), {"R-ENV-VLLM_ROCM_USE_AITER", "R-ENV-020"}),
    ("R-ENV-002", _ONE, _env("VLLM_ROCM_USE_KIMI_K3_PREROUTE_BF16", "1"), set()),
    ("R-ENV-020", _PAIR, _env("HIP_FORCE_DEV_KERNARG", "0", "prefill"), {"R-ENV-HIP_FORCE_DEV_KERNARG"}),
    ("R-ENV-021", _ONE, _env("HF_HUB_OFFLINE", 1), set()),
    ("R-ENV-021", _PAIR, _flag("--max-num-seqs", 64, "decode"), set()),
    ("R-ENV-022", _STOCK, _env("VLLM_ROCM_USE_AITER_MOE_SITUV2", "a8w4"), set()),
    ("R-ENV-023", _STOCK, _env("VLLM_USE_BREAKABLE_CUDAGRAPH", None), set()),
    ("R-ENV-024", _STOCK, _env("VLLM_ROCM_USE_AITER", "0"), set()),
    ("R-ENV-025", _STOCK, _env("HSA_NO_SCRATCH_RECLAIM", None), set()),
    ("R-IMG-001", _ONE, _image(_OLD_IMAGE, "server", "worker"), set()),
    ("R-IMG-001", _ONE, _image("johnqin2025/kimi-k3-dspark:1.1.0-mi355x-rocm7.2.3-20260802", "worker"), set()),
    ("R-IMG-002", _DSPARK, _image(_OLD_IMAGE, "decode"), {"R-IMG-001"}),
    ("R-IMG-003", _ONE, _overlay("0"), set()),
    ("R-IMG-004", _STOCK, _image("vllm/vllm-openai-rocm:v0.27.1"), set()),
    ("R-IMG-005", _SGLANG, _image("lmsysorg/sglang-rocm:v0.5.9-rocm720-mi35x"), set()),
    ("R-IMG-006", _STOCK, _env("VLLM_ROCM_USE_KIMI_K3_PREROUTE_FP8", "1"), set()),
    ("R-NAME-001", _ONE, _name("kimi-k3-optimized-aggregated"), set()),
    ("R-NAME-002", _DRAFT, _name("kimi-k3-optimized-aggregated-dspark"), set()),
    ("R-NAME-003", _PAIR, _name("kimi-k3-optimized-disaggregated"), set()),
    ("R-NAME-004", _DSPARK, _name("kimi-k3-optimized-disaggregated-dspark"), set()),
    ("R-NS-001", _ONE, lambda recipe: setattr(recipe, "namespace", "default"), set()),
    ("R-PH-001", _ONE, _directory("<MODEL_DIR>", "server", "worker"), set()),
    ("R-PH-002", _PAIR, _pin("<DECODE_NODE>", "decode"), set()),
    ("R-PH-003", _ONE, _env("VLLM_HOST_IP", "<NODE_IP>"), set()),
    ("R-PH-004", _PAIR, _pin("gpu-node-a", "decode"), set()),
    ("R-PH-004", _PAIR, _pin(None, "decode"), set()),
    ("R-PH-005", _PAIR, _directory("/srv/nvme/models", "decode"), set()),
    ("R-PH-006", _PAIR, _pin("gpu-node-b", "server"), set()),
    ("R-PH-006", _PAIR, _pin(None, "prefill"), set()),
    ("R-PH-006", _PAIR, _nodes_swapped, set()),
    ("R-PH-006", _DSPARK, _directory("/data/raid/models", "server"), set()),
    ("R-PH-007", _ONE, _pin("gpu-node-b", "server"), set()),
    ("R-PH-007", _DRAFT, _pin(None, "worker"), set()),
    ("R-PH-007", _DRAFT, _pin(None, "server"), set()),
    ("R-WT-001", _ONE, _elsewhere, set()),
    ("R-WT-002", _DRAFT, _json(_SPEC, "model", "Inferact/Kimi-K3-DSpark"), set()),
    ("R-WT-002", _DRAFT, _json(_SPEC, "model", "/draft/Kimi-K3-DSpark"), set()),
    ("R-WT-005", _PAIR, _shared_claim, set()),
    ("R-WT-006", "stock/disaggregated", _single_claim, set()),
    ("R-WT-007", _ONE, _env("HF_HUB_OFFLINE", None), set()),
    ("R-WT-008", _ONE, _flag("--load-format", "fastsafetensors"), set()),
    ("R-ARG-001", _STOCK, _flag("--kv-cache-dtype", None), set()),
    ("R-ARG-001", _STOCK, _flag("--kv-cache-dtype", "fp8"), set()),
    ("R-ARG-002", _DRAFT, _flag("--gpu-memory-utilization", "0.95"), set()),
    ("R-ARG-003", _STOCK, _flag("--gpu-memory-utilization", "0.90"), set()),
    ("R-ARG-004", _ONE, _flag("--tensor-parallel-size", "4"), set()),
    ("R-ARG-004", _ONE, _resource("amd.com/gpu", 4), {"R-RES-001"}),
    ("R-ARG-005", _DRAFT, _json(_SPEC, "attention_backend", "FLASHINFER_MLA"), set()),
    ("R-ARG-005", _DSPARK, _json(_SPEC, "attention_backend", None, "decode"), set()),
    ("R-ARG-006", _DRAFT, _json(_SPEC, "num_speculative_tokens", 3), set()),
    ("R-ARG-006", _DRAFT, _json(_SPEC, "method", "eagle3"), set()),
    ("R-ARG-007", _DSPARK, _flag(_SPEC, None, "prefill"), set()),
    ("R-ARG-007", _DSPARK, _flag(_SPEC, None, "decode"), set()),
    ("R-ARG-010", _ONE, _flag("--max-num-seqs", "256"), set()),
    ("R-ARG-010", _ONE, _flag("--max-model-len", "131072"), set()),
    ("R-ARG-010", _STOCK, _flag("--max-num-batched-tokens", "16384"), set()),
    ("R-ARG-011", _ONE, _flag("--tool-call-parser", "hermes"), set()),
    ("R-ARG-011", _STOCK, _flag("--reasoning-parser", None), set()),
    ("R-ARG-012", _ONE, _flag("--served-model-name", None), set()),
    ("R-ARG-013", _ONE, _flag("--request-transport", None), {"R-ARG-014"}),
    ("R-ARG-013", _PAIR, _flag("--kv-event-transport", "nats", "server"), set()),
    ("R-ARG-014", _ONE, _flag("--discovery-backend", "etcd"), set()),
    ("R-ARG-014", _PAIR, _flag("--request-transport", "nats", "decode"), {"R-ARG-013"}),
    ("R-ARG-015", _PAIR, _json(_KV, "kv_role", "kv_both"), set()),
    ("R-ARG-015", _PAIR, _json(_KV, "kv_connector", "NixlConnector"), set()),
    ("R-ARG-015", _PAIR, _flag(_KV, None, "decode"), set()),
    ("R-ARG-016", "stock/disaggregated-kvd", _json(_KV, "kv_role", "kv_both"), {"R-ARG-015"}),
    ("R-ARG-017", _PAIR, _swapped, set()),
    ("R-ARG-017", _PAIR, _json(_KV, "kv_role", "kv_producer", "decode"), set()),
    ("R-ARG-017", _PAIR, _service("role", None, "prefill"), set()),
    ("R-ARG-018", _PAIR, _flag("--data-parallel-address", "127.0.0.1"), set()),
    ("R-ARG-018", _PAIR, _flag("--data-parallel-address", "192.0.2.10"), set()),
    ("R-ARG-018", _DSPARK, _flag("--data-parallel-address", None, "prefill"), set()),
    ("R-ARG-019", _PAIR, _flag("--advertise-host", "0.0.0.0"), set()),
    ("R-ARG-019", _PAIR, _env("POD_IP", "127.0.0.1"), {"R-ARG-018"}),
    ("R-ARG-020", _PAIR, _json(_KV, "kv_connector", "SharedStorageConnector"), {"R-ARG-015"}),
    ("R-ARG-021", _SGLANG, _flag("--disaggregation-transfer-backend", None), set()),
    ("R-ARG-022", _PAIR, _flag("--disaggregation-allow-tcp", True), set()),
    ("R-ARG-023", _PAIR, _flag("--enable-prefix-caching", True, "decode"), set()),
    ("R-ARG-025", _SGLANG, _flag("--mem-fraction-static", "0.80"), set()),
    ("R-ARG-025", _SGLANG, _flag("--language-only", None), set()),
    ("R-ARG-026", _SGLANG, _resource("amd.com/gpu", 1), set()),
    ("R-ARG-027", _ONE, _flag("--port", "8080"), {"R-PRB-002"}),
    ("R-ARG-027", _PAIR, _service("port", 31000), set()),
    ("R-ARG-027", _ONE, _flag("--port", "9000", "server"), set()),
    ("R-ARG-029", _KVD, _env("PYTHONHASHSEED", None), set()),
    ("R-ARG-030", _KVD, lambda recipe: None, set()),
    ("R-OVL-001", _ONE, _no_wrapper, set()),
    ("R-OVL-001", _ONE, _without("overlay", "worker"), set()),
    ("R-OVL-002", _PAIR, _env("INFERA_REQUIRE_NATIVE", None), set()),
    ("R-OVL-002", _KVD, _env("INFERA_REQUIRE_NATIVE", "mooncake"), set()),
    ("R-OVL-003", _SGLANG, _env("INFERA_REQUIRE_NATIVE", "mooncake,hipfile"), set()),
    ("R-OVL-005", _PAIR, _env("INFERA_SKIP_ENGINE_PATCHES", "1"), set()),
    ("R-PD-001", _PAIR, _service("hostNetwork", None), set()),
    ("R-PD-001", _DSPARK, _service("hostNetwork", False, "decode"), set()),
    ("R-PD-002", _PAIR, _service("dnsPolicy", None), set()),
    ("R-PD-002", _PAIR, _service("dnsPolicy", "ClusterFirst", "prefill"), set()),
    ("R-PD-003", _PAIR, _in_container("securityContext/capabilities/add", ["SYS_PTRACE"]), set()),
    ("R-PD-003", _PAIR, _in_container("securityContext/privileged", None, "decode"), set()),
    ("R-PD-004", _PAIR, _without("ib"), set()),
    ("R-PD-004", _PAIR, _unmounted("ib", "decode"), {"R-PD-006"}),
    ("R-PD-005", _DSPARK, _without("host-libionic", "prefill"), set()),
    ("R-PD-006", _PAIR, _unmounted("host-libionic", "decode"), {"R-PD-005"}),
    ("R-PD-007", _PAIR, _shm("16Gi"), set()),
    ("R-PD-007", _ONE, _shm("8Gi"), set()),
    ("R-PD-007", _STOCK, _shm("32Gi"), set()),
    ("R-PD-007", _ONE, _without("dshm"), set()),
    ("R-PD-013", _PAIR, _env("MC_GID_INDEX", "0"), set()),
    ("R-PD-014", _PAIR, _env("MC_ENABLE_HIP_TRANSPORT", "1"), set()),
    (
        "R-PD-015",
        _PAIR,
        _both(_env("MC_ENABLE_DEST_DEVICE_AFFINITY", "1"), _env("MC_ENABLE_HCA_PEER_AFFINITY", "1")),
        set(),
    ),
    ("R-PD-016", _PAIR, _env("MC_FORCE_TCP", "1"), set()),
    ("R-PD-019", _SGLANG, _flag("--disaggregation-mode", None, "decode"), set()),
    ("R-PD-020", _PAIR, _service("replicas", 2, "decode"), set()),
    ("R-PD-021", _PAIR, _json(_KV, "kv_connector_extra_config", {"mooncake_protocol": "tcp"}), set()),
    ("R-RES-001", _ONE, _resource("memory", "256Gi"), set()),
    ("R-RES-001", _PAIR, _resource("cpu", "16"), set()),
    ("R-RES-001", _ONE, _resource("memory", "256Gi", "requests"), set()),
    ("R-RES-002", _ONE, _resource("memory", "4Gi", service="server"), set()),
    ("R-RES-006", _KVD, _kvd_memory, set()),
    ("R-RES-007", _KVD, _kvd_pins_nothing, set()),
    ("R-RES-008", _KVD, _small_claim, set()),
    ("R-RES-009", _KVD, _flag("--kv-cache-dtype", "fp8_e4m3"), {"R-ARG-001"}),
    ("R-RES-010", _KVD, _kvd_races, set()),
    ("R-PRB-001", _ONE, _in_container("startupProbe/failureThreshold", 60), set()),
    ("R-PRB-001", _STOCK, _in_container("startupProbe/failureThreshold", 120), set()),
    ("R-PRB-002", _ONE, _in_container("startupProbe/httpGet/path", "/ready"), set()),
    ("R-PRB-002", _ONE, _in_container("startupProbe/timeoutSeconds", 1), set()),
    ("R-PRB-003", _ONE, _liveness_alone, set()),
    ("R-TIME-001", _ONE, _env("INFERA_ENGINE_READY_TIMEOUT", None), set()),
    ("R-TIME-001", _ONE, _env("INFERA_ENGINE_READY_TIMEOUT", "600"), set()),
    ("R-TIME-001", _PAIR, _env("INFERA_ENGINE_READY_TIMEOUT", "2h", "decode"), set()),
    ("R-OPR-001", _ONE, _spec(discoveryBackend="etcd"), set()),
    ("R-OPR-002", _ONE, _flat("args", ["--max-num-seqs", "64"]), set()),
    ("R-OPR-002", _ONE, _flat("resources", {"sharedMemory": "32Gi"}), set()),
    ("R-OPR-002", _ONE, _spec(envs=[{"name": "HF_HUB_OFFLINE", "value": "1"}]), set()),
    ("R-OPR-003", _ONE, _spec(nats={"deploy": False, "storageSize": "4 GB"}), set()),
    ("R-OPR-003", _ONE, _shm("32 GB"), set()),
    ("R-OPR-004", _ONE, _name("kimi.k3"), set()),
    ("R-OPR-004", _PAIR, _name("k" * 60), set()),
    ("R-OPR-005", _ONE, _key, set()),
    ("R-OPR-006", _ONE, _renamed, set()),
    ("R-OPR-007", _ONE, lambda recipe: recipe.spec.pop("nats"), set()),
    ("R-OPR-008", _ONE, lambda recipe: recipe.services["worker"].update(flat={"numberOfNodes": 2}), set()),
    ("R-OPR-009", _ONE, _service("serviceAccountName", "own"), set()),
    ("R-OPR-010", _ONE, _late_address, set()),
    ("R-OPR-013", _ONE, _service("role", "aggregated"), set()),
    ("R-OPR-014", _PAIR, _two_prefills, set()),
    ("R-OPR-015", _ONE, _no_server, set()),
    ("R-OPR-016", _ONE, _flag("--router-tokenizer-path", "/models/Kimi-K2", "server"), set()),
    ("R-OPR-017", _PAIR, _service("replica", 1, "prefill"), set()),
    ("R-OPR-017", _ONE, _typo, {"R-PH-007"}),
    ("R-CHO-003", _ONE, _flag("--kv-cache-dtype", "fp8_e4m3"), {"R-ARG-001"}),
    ("R-CHO-008", _STOCK, _flag(_SPEC, {"method": "dspark", "model": "/models/Kimi-K3-DSpark"}), set()),
    ("R-LOG-012", _SGLANG, _flag("--speculative-algorithm", "DSPARK"), set()),
]


@pytest.mark.parametrize(
    ("fact", "combo", "change", "besides"), _CHANGES, ids=lambda value: value if type(value) is str else ""
)
def test_a_broken_fact_is_told(fact: str, combo: str, change: Change, besides: set[str]) -> None:
    recipe = repaired(combo)
    change(recipe)
    for profile in (combo, None):
        found = recipe.lint(profile)
        assert fact in told(found)
        assert faults(found) <= {fact, *besides}


def test_a_draft_in_the_profile_without_one() -> None:
    assert faults(repaired(_DSPARK).lint(_PAIR)) == {"R-ARG-009"}


def test_slow_storage() -> None:
    site = {**SITE, "modelStorage": "nfs", "expectedReadySeconds": 5700}
    assert faults(repaired(_ONE).lint(_ONE, site)) == {"R-WT-003", "R-PRB-001"}


def test_another_accelerator() -> None:
    site = {**SITE, "hardware": "mi300x"}
    assert faults(repaired(_ONE).lint(_ONE, site)) == {"R-CHO-004", "R-CHO-009"}


def test_an_old_cluster() -> None:
    site = {**SITE, "kubernetes": {"version": "1.27.3"}}
    assert faults(repaired(_ONE).lint(_ONE, site)) == {"R-CHO-005"}


_NOT_IN_MANIFESTS = {
    # statements about how to work, how long things take, or what only a log or a running system shows
    *(
        "R-WT-004",
        "R-WT-009",
        "R-IMG-007",
        "R-NAME-005",
        "R-OVL-004",
        "R-OVL-006",
        "R-ARG-008",
        "R-ARG-024",
        "R-ARG-028",
    ),
    *("R-PD-008", "R-PD-009", "R-PD-010", "R-PD-011", "R-PD-012", "R-PD-017", "R-PD-018", "R-PD-022", "R-PRB-004"),
    *("R-RES-003", "R-RES-005", "R-OPR-011", "R-OPR-012"),
    *(f"R-TIME-00{number}" for number in range(2, 7)),
    *(f"R-SMK-00{number}" for number in range(1, 9)),
    *(
        "R-CHO-001",
        "R-CHO-002",
        "R-CHO-006",
        "R-CHO-007",
        "R-CHO-010",
        "R-CHO-011",
        "R-CHO-012",
        "R-CHO-013",
        "R-CHO-015",
    ),
    *(f"R-LOG-{number:03}" for number in range(1, 12)),
}


def test_every_fact_that_a_manifest_can_break_is_broken_here() -> None:
    tried = {fact for fact, _, _, _ in _CHANGES}
    tried |= {"R-ARG-009", "R-WT-003", "R-PRB-001", "R-CHO-004", "R-CHO-009", "R-CHO-005", "R-RES-004"}
    assert {fact["id"] for fact in handed()["facts"]} - tried - _NOT_IN_MANIFESTS == set()
