"""The probe in an engine of fakes: what it writes, what it refuses, and that off means untouched."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_engine import Fake, Router, Runner, Tensor, digest, install
from jsonschema import Draft202012Validator
from moeplan_vllm_probe import plugin
from moeplan_vllm_probe.faults import ProbeFault
from moeplan_vllm_probe.layers import RoutedLayer
from moeplan_vllm_probe.plugin import register
from moeplan_vllm_probe.starts import mark_engine_start, process_start_ns
from moeplan_vllm_probe.switches import read_switches

SCHEMA = Path(plugin.__file__).parent / "schema/probe-record-1.schema.json"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    return install(monkeypatch)


@pytest.fixture
def start(fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Path]:
    """Return what switches the probe on and starts the engine, and returns the records' directory."""
    monkeypatch.setattr(plugin, "_REGISTERED", [])
    monkeypatch.setenv("MOEPLAN_PROBE_ENGINE", "")
    monkeypatch.delenv("MOEPLAN_PROBE_ENGINE")
    for name in ("MOEPLAN_PROBE_CACHE", "VLLM_CACHE_ROOT", "VLLM_DISABLE_COMPILE_CACHE"):
        monkeypatch.setenv(name, "")

    def begin(**switches: str) -> Path:
        monkeypatch.setenv("MOEPLAN_PROBE_DIR", str(tmp_path / "probe"))
        for name, value in {"INTERVAL_MS": "3600000", **switches}.items():
            monkeypatch.setenv(f"MOEPLAN_PROBE_{name}", value)
        register()
        fake.start()
        return tmp_path / "probe"

    return begin


def lines(directory: Path, kind: str) -> list[dict[str, Any]]:
    (path,) = directory.glob(f"{kind}-*.jsonl")
    found = [json.loads(row) for row in path.read_bytes().split(b"\n")[:-1]]
    schema: Any = Draft202012Validator(json.loads(SCHEMA.read_text()))
    assert [error.message for line in found for error in schema.iter_errors(line)] == []
    assert [line["seq"] for line in found[1:]] == list(range(len(found) - 1))
    return found


def test_off_touches_nothing_and_imports_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plugin, "_REGISTERED", [])
    monkeypatch.setenv("MOEPLAN_PROBE_DIR", str(tmp_path / "probe"))
    monkeypatch.setitem(sys.modules, "vllm", None)  # any import of it would fail
    register()
    assert plugin._REGISTERED == []
    assert not (tmp_path / "probe").exists()


def test_off_leaves_the_hooks_as_they_were(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_REGISTERED", [])
    worker, iterator = fake.modules["vllm.v1.worker.worker_base"].WorkerBase.__init__, fake.iterator
    register()
    assert fake.modules["vllm.v1.worker.worker_base"].WorkerBase.__init__ is worker
    assert fake.iterator is iterator


def test_counting_alone_leaves_the_iterators(fake: Fake, start: Callable[..., Path]) -> None:
    iterator = fake.iterator
    directory = start(COUNT="1", MEMORY="0")
    assert fake.iterator is iterator
    assert [path.name.split("-")[0] for path in directory.glob("*.jsonl")] == ["experts"]


def test_the_digests_are_those_of_the_bytes(fake: Fake, start: Callable[..., Path]) -> None:
    arrays: list[Any] = [
        np.arange(10, dtype=np.int16).reshape(2, 5),
        np.asarray(7.5, np.float32),
        np.zeros((0, 3), np.float64),
    ]
    fake.weights = [(f"t{at}", Tensor(array)) for at, array in enumerate(arrays)]
    written = lines(start(HASH="1", MEMORY="0"), "weights")
    tensors = [line for line in written if line["type"] == "tensor"]
    assert [(line["name"], line["sha256"], line["bytes"], line["shape"]) for line in tensors] == [
        (f"t{at}", digest(array), array.nbytes, list(array.shape)) for at, array in enumerate(arrays)
    ]
    assert [line["dtype"] for line in tensors] == ["I16", "F32", "F64"]
    assert (written[1]["files"], written[-1]["bytes"]) == ([{"name": "model.safetensors", "bytes": None}], 24)
    assert written[0]["rank"]["tensorParallel"] == {"rank": 1, "size": 2}
    assert written[0]["rank"]["expertParallel"] is None


def test_an_iterator_left_early_is_said_to_be_incomplete(
    fake: Fake, start: Callable[..., Path], tmp_path: Path
) -> None:
    directory = start(HASH="1", MEMORY="0")
    fake.weights *= 2
    iterator = fake.iterator(["f"], True)
    next(iterator)
    iterator.close()  # type: ignore[attr-defined]
    assert lines(directory, "weights")[-1] == lines(directory, "weights")[-1] | {"complete": False, "tensors": 1}


def test_padding_and_warm_up_are_counted_apart(fake: Fake, start: Callable[..., Path]) -> None:
    directory = start(COUNT="1")
    fake.step([[0, 1], [1, 2], [3, 3], [0, 0]], tokens=3)
    fake.route([[0, 1]])  # a dummy batch, outside any step
    fake.step([[2, 9], [-1, 2]], tokens=2)
    fake.worker.shutdown()
    written = lines(directory, "experts")
    assert [(row["warmUp"], row["synthetic"]) for row in written[1]["layers"]] == [(16, 2), (16, 2)]
    assert (written[2]["steps"], written[2]["tokens"], written[2]["totalTokens"]) == (2, 5, 5)
    expected = {"selections": [1, 2, 3, 2], "unserved": 4, "strays": 2, "total": 8}
    assert written[2]["layers"] == [{"layer": 0, **expected}, {"layer": 1, **expected}]
    assert written[0]["layers"][0]["dropped"] is None  # not a router known to drop nothing


def test_intervals_add_up_while_steps_run(fake: Fake, start: Callable[..., Path]) -> None:
    directory = start(COUNT="1", MEMORY="0", INTERVAL_MS="10")
    (path,), steps, until = directory.glob("experts-*"), 0, time.monotonic() + 30
    while path.read_bytes().count(b"\n") < 8 and time.monotonic() < until:
        fake.step([[0, 3], [3, 1]], tokens=2)
        steps += 1
    fake.worker.shutdown()
    counts = [line for line in lines(directory, "experts") if line["type"] == "counts"]
    assert len(counts) > 3
    for line in counts:  # every reading lies between steps: all layers saw the tokens that the scheduler gave
        assert all(sum(row["selections"]) == 2 * line["tokens"] for row in line["layers"])
    assert sum(line["tokens"] for line in counts) == counts[-1]["totalTokens"] == 2 * steps
    assert [line for line in counts if line["layers"]][-1]["layers"][0]["total"] == 4 * steps


def test_callbacks_before_and_later_are_called_too(fake: Fake, start: Callable[..., Path]) -> None:
    seen: list[str] = []
    fake.layers[0].router.set_capture_fn(lambda ids: seen.append("before"))
    directory = start(COUNT="1")
    assert set(seen) == {"before"}
    fake.layers[1].router.set_capture_fn(lambda ids: seen.append("later"))
    fake.step([[0, 1]], tokens=1)
    fake.worker.shutdown()
    assert seen[-2:] == ["before", "later"]
    assert [row["total"] for row in lines(directory, "experts")[-1]["layers"]] == [2, 2]


def test_a_callback_put_past_the_setter_is_a_fault(fake: Fake, start: Callable[..., Path]) -> None:
    directory = start(COUNT="1", MEMORY="0")
    fake.layers[1].router.capture_fn = lambda ids: None
    fake.worker.shutdown()
    last = lines(directory, "experts")[-1]
    assert (last["code"], "model.layers.1" in last["message"]) == ("hook_replaced", True)


def test_layers_of_a_drafter_are_named_as_such(fake: Fake, start: Callable[..., Path]) -> None:
    fake.registered["draft.layers.0.mlp.experts"] = Runner("draft.layers.0.mlp.experts", Router(1, 4))
    directory = start(COUNT="1")
    layers = lines(directory, "experts")[0]["layers"]
    assert [(layer["draft"], layer["padding"]) for layer in layers] == [(False, "excluded")] * 2 + [(True, "counted")]
    fake.step([[0, 1], [1, 2]], tokens=1)
    fake.worker.shutdown()
    assert [row["total"] for row in lines(directory, "experts")[-1]["layers"]] == [2, 2, 4]


def test_hash_routed_layers_are_named_as_such(fake: Fake, start: Callable[..., Path]) -> None:
    fake.layers[0].router._hash_indices_table = object()
    assert [layer["hashRouted"] for layer in lines(start(COUNT="1"), "experts")[0]["layers"]] == [True, False]


def kernel(replays: bool) -> Any:
    return SimpleNamespace(moe_config=None, supports_routing_replay_capture=lambda: replays)


def test_a_monolithic_kernel_is_counted_through_its_sink(fake: Fake, start: Callable[..., Path]) -> None:
    fake.layers = [Runner("model.layers.0.mlp.experts", Router(2, 4), kernel(True))]
    directory = start(COUNT="1")
    fake.step([[0, 1]], tokens=1)
    fake.worker.shutdown()
    written = lines(directory, "experts")
    assert written[0]["layers"][0]["via"] == "routing_sink"
    assert written[-1]["layers"][0]["selections"] == [1, 1, 0, 0]


def silence(fake: Fake) -> None:
    fake.layers[1].router.silent = True


def stale(fake: Fake) -> None:
    """What is replayed after the warm-up does not count, as a graph from a cache would not."""
    fake.dummy = []


def monolithic(fake: Fake) -> None:
    fake.layers[1] = Runner("model.layers.1.mlp.experts", Router(2, 4), kernel(False))


def foreign(fake: Fake) -> None:
    fake.layers[1].router = SimpleNamespace(top_k=2, select=lambda ids: None)


def dense(fake: Fake) -> None:
    fake.layers = []


def bypass(fake: Fake) -> None:
    fake.bypass = True


def microbatches(fake: Fake) -> None:
    fake.parallel.use_ubatching = True


def context(fake: Fake) -> None:
    fake.parallel.prefill_context_parallel_size = 2


BLIND = [
    (silence, "COUNT", "experts", "counter_stays_zero"),
    (stale, "COUNT", "experts", "counter_stays_zero"),
    (monolithic, "COUNT", "experts", "router_bypasses_hook"),
    (foreign, "COUNT", "experts", "router_bypasses_hook"),
    (dense, "COUNT", "experts", "no_router"),
    (microbatches, "COUNT", "experts", "microbatches"),
    (context, "COUNT", "experts", "context_parallel"),
    (bypass, "HASH", "weights", "loader_bypasses_iterators"),
]


@pytest.mark.parametrize(("change", "switch", "kind", "code"), BLIND, ids=[row[3] + row[0].__name__ for row in BLIND])
def test_what_the_probe_would_miss_stops_the_engine(
    fake: Fake, start: Callable[..., Path], tmp_path: Path, change: Any, switch: str, kind: str, code: str
) -> None:
    change(fake)
    with pytest.raises(ProbeFault, match=f"moeplan probe: {code}: "):
        start(**{switch: "1"})
    assert lines(tmp_path / "probe", kind)[-1]["code"] == code


@pytest.mark.parametrize(("change", "switch", "kind", "code"), BLIND, ids=[row[3] + row[0].__name__ for row in BLIND])
def test_lenient_writes_the_fault_and_goes_on(
    fake: Fake, start: Callable[..., Path], change: Any, switch: str, kind: str, code: str
) -> None:
    change(fake)
    directory = start(LENIENT="1", **{switch: "1"})
    assert code in [line.get("code") for line in lines(directory, kind)]
    fake.routed = []
    assert fake.worker.execute_model(SimpleNamespace(total_num_scheduled_tokens=0)) == "output"


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"MOEPLAN_PROBE_HASH": "yes", "MOEPLAN_PROBE_DIR": "d"}, "wrong_switch"),
        ({"MOEPLAN_PROBE_COUNT": "1"}, "no_directory"),
        ({"MOEPLAN_PROBE_COUNT": "1", "MOEPLAN_PROBE_DIR": "d", "MOEPLAN_PROBE_INTERVAL_MS": "0"}, "wrong_interval"),
        ({"MOEPLAN_PROBE_COUNT": "1", "MOEPLAN_PROBE_DIR": "d", "MOEPLAN_PROBE_INTERVAL_MS": "1s"}, "wrong_interval"),
    ],
)
def test_switches_that_are_wrong(environment: dict[str, str], code: str) -> None:
    with pytest.raises(ProbeFault, match=code):
        read_switches(environment)


def test_memory_is_on_with_either_unless_it_is_switched_off() -> None:
    assert read_switches({"MOEPLAN_PROBE_HASH": "1", "MOEPLAN_PROBE_DIR": "d"}).memory
    assert not read_switches({"MOEPLAN_PROBE_HASH": "1", "MOEPLAN_PROBE_MEMORY": "0", "MOEPLAN_PROBE_DIR": "d"}).memory
    assert not read_switches({}).any


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("vllm.model_executor.model_loader.default_loader", "safetensors_weights_iterator"),
        ("vllm.v1.worker.worker_base", "WorkerBase"),
    ],
)
def test_a_vllm_without_the_hooks_is_refused_by_name(
    fake: Fake, start: Callable[..., Path], module: str, name: str
) -> None:
    delattr(fake.modules[module], name)
    with pytest.raises(ProbeFault, match=rf"hook_missing: vLLM 0\.32\.0 has no {module}\.{name}"):
        start(HASH="1")


def test_a_worker_without_a_method_is_refused_by_name(fake: Fake, start: Callable[..., Path]) -> None:
    del fake.modules["vllm.v1.worker.worker_base"].FakeWorker.shutdown
    with pytest.raises(ProbeFault, match=r"hook_missing: .*FakeWorker\.shutdown"):
        start(COUNT="1")


@pytest.mark.parametrize(("version", "tested"), [("0.32.4", True), ("0.99.0", False), ("0.320.0", False)])
def test_another_version_with_the_hooks_is_taken_and_said_to_be_untested(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., Path], fake: Fake, version: str, tested: bool
) -> None:
    monkeypatch.setattr(fake.modules["vllm.version"], "__version__", version)
    assert lines(start(COUNT="1"), "experts")[0]["engine"] == {"name": "vllm", "version": version, "tested": tested}


def test_counting_takes_a_compile_cache_of_its_own(start: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    directory = start(COUNT="1")
    assert Path(os.environ["VLLM_CACHE_ROOT"]).parent == directory / "compile-cache"
    assert lines(directory, "experts")[0]["compileCache"]["choice"] == "probe"


def test_a_cache_that_the_user_chose_is_kept_and_said(
    start: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    monkeypatch.setenv("VLLM_CACHE_ROOT", "/cache")
    directory = start(COUNT="1")
    assert os.environ["VLLM_CACHE_ROOT"] == "/cache"
    assert lines(directory, "experts")[0]["compileCache"] == {"choice": "user", "variables": ["VLLM_CACHE_ROOT"]}


def test_hashing_alone_leaves_the_compile_cache(start: Callable[..., Path]) -> None:
    import os

    start(HASH="1")
    assert os.environ["VLLM_CACHE_ROOT"] == ""


def test_memory_counts_each_storage_once(fake: Fake, start: Callable[..., Path]) -> None:
    written = lines(start(MEMORY="1"), "memory")
    assert [line["phase"] for line in written[1:]] == ["loaded", "ready"]
    assert written[1]["weights"] == {"bytes": 400, "bufferBytes": 0, "emptied": 1}
    assert written[1]["kvCache"] == {"bytes": 56}
    status = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
    assert 0 < written[1]["process"]["rssBytes"] <= int(status["VmHWM"].split()[0]) * 1024
    assert "notExposed" in written[1]["allocator"]


def test_the_start_of_the_process_lies_before_now_by_its_age() -> None:
    started = process_start_ns()
    assert started is not None
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 < time.time_ns() - started < uptime * 1e9


def test_the_workers_know_the_start_of_the_engine_they_are_of(
    start: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOEPLAN_PROBE_ENGINE", "7:1796086015560000000")  # as a parent process left it
    header = lines(start(HASH="1"), "weights")[0]
    assert header["engineProcess"] == {"pid": 7, "startedWallNs": "1796086015560000000"}
    assert int(header["process"]["startedWallNs"]) == process_start_ns()


def test_the_first_process_is_the_engine() -> None:
    import os

    environment: dict[str, str] = {}
    mark_engine_start(environment)
    assert environment == {"MOEPLAN_PROBE_ENGINE": f"{os.getpid()}:{process_start_ns()}"}


METADATA = SimpleNamespace(num_tokens_across_dp_cpu=[3, 2], local_sizes=None)


@pytest.mark.parametrize(
    ("rows", "sharded", "served", "strays"),
    [
        ([[0, 1], [2, 3]], False, [1, 1, 1, 1], 0),
        ([[0, 0]] * 3 + [[1, 2], [3, 3]], False, [0, 1, 1, 2], 0),
        ([[0, 1]], True, [0, 0, 0, 0], 0),
        ([[0, 1]] * 4, False, [0, 0, 0, 0], 8),
    ],
    ids=["its own tokens", "the tokens of all ranks", "a shard beyond the tokens", "no known layout"],
)
def test_each_rank_counts_its_own_tokens(
    fake: Fake, start: Callable[..., Path], rows: list[list[int]], sharded: bool, served: list[int], strays: int
) -> None:
    """Rank 1 of two data-parallel ranks, which have 3 and 2 tokens; its tensor-parallel rank is 1 of 2."""
    fake.parallel = SimpleNamespace(
        data_parallel_size=2, data_parallel_rank=1, tensor_parallel_size=2, use_sequence_parallel_moe=sharded
    )
    directory = start(COUNT="1", MEMORY="0")
    fake.modules["vllm.forward_context"].context.dp_metadata = METADATA
    fake.step(rows, tokens=2 if not sharded else 1)
    fake.worker.shutdown()
    (row, _) = lines(directory, "experts")[-1]["layers"]
    assert (row["selections"], row["strays"]) == (served, strays)


def test_a_model_that_is_no_runner_but_captures_is_counted(fake: Fake, start: Callable[..., Path]) -> None:
    experts = SimpleNamespace(layer_id=0, capture_fn=None, num_experts=4, num_logical_experts=4, top_k=2, prefix="m.0")
    fake.layers = [experts]
    fake.route = lambda ids: experts.capture_fn(Tensor(np.asarray(ids)))  # type: ignore[method-assign]
    directory = start(COUNT="1", MEMORY="0")
    fake.step([[0, 3]], tokens=1)
    fake.worker.shutdown()
    written = lines(directory, "experts")
    assert (written[0]["layers"][0]["via"], written[0]["layers"][0]["name"]) == ("module", "m.0")
    assert written[-1]["layers"][0]["selections"] == [1, 0, 0, 1]


def test_only_known_routers_are_said_to_drop_nothing() -> None:
    layer = RoutedLayer("l", False, 4, 2, "CPURouter", "capture_fn", None, True, False)
    assert layer.as_json()["dropped"] == {"count": 0, "basis": "dropless kernels: no capacity factor"}
