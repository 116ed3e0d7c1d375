"""The probe in a real engine: digests, conservation of tokens, refusals. Needs ``MOEPLAN_E2E_ENGINE``."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from probe_engine import CHECKPOINT, ENGINE, REPOSITORY, Engine, digests_of_files, engine, lines

pytestmark = pytest.mark.skipif(not ENGINE, reason="MOEPLAN_E2E_ENGINE names no vllm program")

SCHEMA = REPOSITORY / "plugins/moeplan-vllm-probe/moeplan_vllm_probe/schema/probe-record-1.schema.json"
CONFIG = json.loads((CHECKPOINT / "config.json").read_text())
TOP_K, LAYERS, EXPERTS = CONFIG["num_experts_per_tok"], CONFIG["num_hidden_layers"], CONFIG["num_local_experts"]


EAGER = ["--enforce-eager", "--dtype", "float32"]
"""vLLM 0.32.0 for CPUs computes attention in bfloat16 with tile instructions; a worker that compiled nothing has not
asked the kernel for them, and dies of SIGILL at its first token, with or without a probe."""


@pytest.fixture(scope="module", params=[[], EAGER], ids=["compiled", "eager"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    directory = tmp_path_factory.mktemp("engine")
    switches = {"MOEPLAN_PROBE_HASH": "1", "MOEPLAN_PROBE_COUNT": "1", "MOEPLAN_PROBE_INTERVAL_MS": "200"}
    with engine(directory, request.param, switches) as started:
        assert started.wait(), started.log.read_text(errors="replace")[-3000:]
        yield started


def selections(directory: Path) -> tuple[list[int], int]:
    """Return the sum of the selections of each layer over all lines, and the tokens that the engine scheduled."""
    sums, tokens = [0] * LAYERS, 0
    for line in lines(directory, "experts"):
        if line["type"] == "counts":
            tokens += line["tokens"]
            for row in line["layers"]:
                assert len(row["selections"]) == EXPERTS
                assert row["strays"] == 0
                sums[row["layer"]] += sum(row["selections"])
                assert row["total"] == sums[row["layer"]]
    return sums, tokens


@pytest.mark.parametrize(("tokens", "parallel"), [(1, 1), (20, 6)], ids=["prompts", "generation"])
def test_every_token_is_counted_in_every_layer(served: Engine, tokens: int, parallel: int) -> None:
    time.sleep(0.7)
    before, (counted, scheduled) = served.counters(), selections(served.directory)
    prompts = [f"{number} quick foxes jump over {number * 7} lazy dogs" for number in range(12)]
    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(lambda prompt: served.ask(prompt, tokens), prompts))
    time.sleep(0.7)
    after, (now, rescheduled) = served.counters(), selections(served.directory)
    grown = {name: after[name] - before[name] for name in after}
    assert grown["request_success"] == 12
    assert grown["generation_tokens"] == 12 * tokens
    computed = grown["prompt_tokens"] - grown["prefix_cache_hits"] + grown["generation_tokens"] - 12
    assert [layer - earlier for layer, earlier in zip(now, counted, strict=True)] == [TOP_K * computed] * LAYERS
    assert rescheduled - scheduled == computed


def test_the_digests_are_those_of_the_files(served: Engine) -> None:
    written = lines(served.directory, "weights")
    tensors = [line for line in written if line["type"] == "tensor"]
    found = {line["name"]: (line["sha256"], line["bytes"], line["dtype"], line["shape"]) for line in tensors}
    assert len(tensors) == len(found) == 231
    assert found == digests_of_files()
    assert [line["complete"] for line in written if line["type"] == "passEnd"] == [True]
    assert written[-1]["type"] == "end"
    assert written[-1]["bytes"] == sum(entry[1] for entry in found.values())


def test_warm_up_is_seen_and_not_served(served: Engine) -> None:
    written = lines(served.directory, "experts")
    (tested,) = [line for line in written if line["type"] == "selfTest"]
    assert len(tested["layers"]) == LAYERS
    assert all(row["synthetic"] == TOP_K for row in tested["layers"])  # a dummy batch is one token
    assert all(row["served"] == row["strays"] == 0 for row in tested["layers"])
    header = written[0]
    assert [layer["name"] for layer in header["layers"]] == [f"model.layers.{at}.mlp.experts" for at in range(LAYERS)]
    assert {(layer["experts"], layer["topK"]) for layer in header["layers"]} == {(EXPERTS, TOP_K)}
    assert header["compileCache"] == {"choice": "probe", "variables": ["VLLM_CACHE_ROOT"], "taken": True}
    assert not [line for line in written if line["type"] == "fault"]


def test_the_engine_start_is_that_of_its_metrics(served: Engine) -> None:
    with served._open("/metrics") as answer:
        rows = answer.read().decode().splitlines()
    (told,) = [row.split(" ")[1] for row in rows if row.startswith("process_start_time_seconds ")]
    header = lines(served.directory, "weights")[0]
    assert abs(int(header["engineProcess"]["startedWallNs"]) - int(float(told) * 1e9)) < 1000
    assert header["process"]["startedWallNs"] > header["engineProcess"]["startedWallNs"]


def test_memory_tells_the_kv_cache_of_the_command(served: Engine) -> None:
    written = [line for line in lines(served.directory, "memory") if line["type"] == "memory"]
    assert [line["phase"] for line in written[:3]] == ["loaded", "ready", "serving"]
    assert written[-1]["kvCache"]["bytes"] == 1 << 30
    assert written[-1]["process"]["rssPeakBytes"] >= written[-1]["process"]["rssBytes"] > 100 << 20


def test_every_line_is_of_the_published_format(served: Engine) -> None:
    schema: Any = Draft202012Validator(json.loads(SCHEMA.read_text()))
    for kind in ("weights", "experts", "memory"):
        for line in lines(served.directory, kind):
            assert [error.message for error in schema.iter_errors(line)] == []


def plugin(directory: Path, name: str, source: str) -> str:
    """Write another plugin of vLLM; return the directory that has it."""
    information = directory / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[vllm.general_plugins]\n{name} = {name}:register\n")
    (directory / f"{name}.py").write_text(source)
    return str(directory)


SILENT = """
def register():
    from vllm.model_executor.layers.fused_moe.router.base_router import BaseRouter
    select = BaseRouter._select_experts
    def _select_experts(self, *args, **kwargs):
        kept, self.capture_fn = self.capture_fn, None
        try:
            return select(self, *args, **kwargs)
        finally:
            self.capture_fn = kept
    BaseRouter._select_experts = _select_experts
"""


def test_a_router_that_never_calls_back_stops_the_engine(tmp_path: Path) -> None:
    path = plugin(tmp_path / "plugin", "silent_router", SILENT)
    with engine(tmp_path, EAGER, {"PYTHONPATH": path, "MOEPLAN_PROBE_COUNT": "1"}) as started:
        assert not started.wait()
        assert "moeplan probe: counter_stays_zero: 4 of 4 layers" in started.log.read_text(errors="replace")
    assert lines(started.directory, "experts")[-1]["code"] == "counter_stays_zero"


def test_weights_that_pass_no_iterator_stop_the_engine(tmp_path: Path) -> None:
    with engine(tmp_path, [*EAGER, "--load-format", "dummy"], {"MOEPLAN_PROBE_HASH": "1"}) as started:
        assert not started.wait()
        assert "moeplan probe: loader_bypasses_iterators" in started.log.read_text(errors="replace")
    written = lines(started.directory, "weights")
    assert written[0]["loader"] == {"format": "dummy", "class": "DummyModelLoader"}
    assert written[-1]["code"] == "loader_bypasses_iterators"


def in_engine(program: str, environment: dict[str, str]) -> str:
    """Run a program under the engine's Python; return what it prints."""
    python = str(Path(ENGINE).parent / "python")
    ran = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout.splitlines()[-1]


def test_off_means_nothing_is_even_imported(tmp_path: Path) -> None:
    program = "import sys; from moeplan_vllm_probe.plugin import register; register(); print('vllm' in sys.modules)"
    assert in_engine(program, {"MOEPLAN_PROBE_DIR": str(tmp_path / "probe")}) == "False"
    assert not (tmp_path / "probe").exists()


CHAINED = """
import torch
from types import SimpleNamespace
from vllm.model_executor.layers.fused_moe.router.cpu_router import CPURouter
from moeplan_vllm_probe.counting import Counters, TokenView
from moeplan_vllm_probe.layers import routed_layers
router, calls = CPURouter(top_k=2, global_num_experts=8), []
router.set_capture_fn(lambda ids: calls.append("first"))
module = torch.nn.Module()
module.router, module.layer_name = router, "layer"
counters = Counters(routed_layers(module, {}), torch.device("cpu"), TokenView(SimpleNamespace()))
counters.serve(3)
route = lambda: router._select_experts(torch.zeros(4, 8), torch.rand(4, 8))
route()
router.set_capture_fn(lambda ids: calls.append("second"))
route()
(counts,) = counters.read(counters.snapshot())
print(calls, sum(counts.served), counts.unserved, counts.strays, counters.displaced)
"""


def test_callbacks_set_before_and_later_are_called_beside_the_counter() -> None:
    assert in_engine(CHAINED, {}) == "['first', 'second'] 12 4 0 []"


def test_the_probe_is_installed_where_the_engine_is() -> None:
    assert sys.version_info >= (3, 10)
    assert in_engine("import moeplan_vllm_probe as probe; print(probe.VERSION)", {}) == "0.1.0"
