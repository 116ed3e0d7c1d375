"""One valid input for every importer, as JSON values or text, with secrets where its tool writes such things."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from tests.integration.privacy import SEEDS, SOWN, salted
from tests.unit.importers import (
    made,
    test_aiperf,
    test_benchmark_serving,
    test_guidellm,
    test_inference_perf,
    test_kubectl,
    test_lm_eval,
    test_reported,
    test_sglang_bench,
    test_vllm_log,
)

__all__ = ["INPUTS", "Input"]

DATA = Path(__file__).resolve().parents[1] / "data"
ASKED = ("--requested-input", "8", "--requested-output", "4", "--ignore-eos")
INTERVAL = ("--started", "2026-11-30T16:30:00Z", "--ended", "2026-11-30T18:00:00Z")
Values = list[Any]


@attrs.frozen
class Input:
    """What a command reads: documents that become one file, one a line, and the options it needs.

    ``closed``: keys whose objects are maps of the tool's, where a key more would be another input. ``raw``: files as
    they are, for inputs that are no JSON. ``codes``: exit codes of the salted input.
    """

    documents: Callable[[], Values] | None
    options: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    raw: Callable[[], dict[str, bytes]] | None = None
    codes: tuple[int, ...] = (0, 1)
    directory: bool = False

    def files(self, documents: Values | None = None) -> dict[str, bytes]:
        """Return the salted files, or those of the given documents, by ending."""
        if self.raw is not None:
            return self.raw()
        assert self.documents is not None
        values = [salted(each, self.closed) for each in self.documents()] if documents is None else documents
        texts = [each if isinstance(each, str) else json.dumps(each) for each in values]
        return {"a.json": "".join(text + "\n" for text in texts).encode()}


def _sglang() -> Values:
    told = test_sglang_bench.run(generated_texts=[SOWN] * 3, errors=["", "", SOWN])
    return [json.loads(json.dumps(told).replace("Infinity", '"inf"'))]


def _guidellm() -> Values:
    requests = [
        test_guidellm.request(start) | {"request_args": SOWN, "output": SOWN, "request_id": "r"} for start in (4, 0)
    ]
    report = json.loads(test_guidellm.report(test_guidellm.benchmark(successful=requests)))
    report["benchmarks"][0]["config"]["backend"]["target"] = "http://" + SEEDS["IPv4"]
    return [report | {"args": {"target": SOWN, "model": "tiny"}}]


def _aiperf() -> Values:
    return [test_aiperf.record(0), test_aiperf.record(1) | {"error": {"message": SOWN, "type": "E"}}]


def _inference_perf() -> Values:
    asked = json.dumps(json.loads(test_inference_perf.REQUEST) | {"prompt": SEEDS["prompt"]})
    events = test_inference_perf.EVENTS.replace("a ", SEEDS["answer"])
    failed = test_inference_perf.request(101.0, error={"error_type": "E", "error_msg": SOWN})
    return [[test_inference_perf.request(request=asked, response=events), failed]]


PLACED = " ".join(secret for name, secret in SEEDS.items() if name not in ("prompt", "answer"))


def _log() -> dict[str, bytes]:
    lines = [
        f"(APIServer pid=7) INFO 09-21 12:29:03 [a.py:1] {PLACED}",
        f"(APIServer pid=7) INFO 09-21 12:29:03 [utils.py:328] non-default args: {{'model': '{SEEDS['home path']}'}}",
        f"(APIServer pid=7) INFO 09-21 12:29:03 [l.py:2] Received request cmpl-1: prompt: '{SEEDS['prompt']}'",
        f'(APIServer pid=7) INFO: {SEEDS["IPv4"]}:4411 - "POST /v1/completions HTTP/1.1" 200 OK',
        f"(Worker_TP0 pid=70) ERROR 09-21 12:29:03 [x.py:2] RuntimeError: {PLACED}",
        f"(EngineCore_DP0 pid=66) INFO 09-21 12:29:22 [core.py:76] engine (v0.10.2) with config: model='{SOWN}'",
    ]
    return {"a.log": (test_vllm_log.GPU_LOG + "\n".join(lines) + "\n").encode()}


def _pods() -> Values:
    one = test_kubectl.pod(SEEDS["host name"], SEEDS["node name"], 2, "OOMKilled")
    one["metadata"] |= {"annotations": {"owner": SOWN}, "labels": {SEEDS["user name"]: SOWN}}
    one["spec"] |= {"containers": [{"env": [{"name": "HF_TOKEN", "value": SEEDS["API key"]}], "args": [SOWN]}]}
    one["status"] |= {"hostIP": SEEDS["IPv4"], "podIPs": [{"ip": SEEDS["IPv6"]}], "message": SOWN}
    one["status"]["containerStatuses"][0] |= {"name": "seedada"}
    return [{"kind": "List", "items": [one]}]


def _events() -> Values:
    about = {"kind": "Pod", "name": SEEDS["host name"], "namespace": SEEDS["user name"]}
    return [
        {
            "kind": "List",
            "items": [
                {
                    "kind": "Event",
                    "type": "Warning",
                    "reason": "BackOff",
                    "message": SOWN,
                    "count": 3,
                    "firstTimestamp": "2026-11-30T16:30:00Z",
                    "lastTimestamp": "2026-11-30T16:31:00Z",
                    "involvedObject": about,
                    "source": {"component": "kubelet", "host": SEEDS["node name"]},
                }
            ],
        }
    ]


def _lm_eval() -> dict[str, bytes]:
    four = [each | {"doc": {"q": SOWN}, "resps": SOWN, "arguments": SOWN} for each in test_lm_eval.FOUR]
    told = {"config": {"model_args": SOWN}, "model_name": SOWN, "upper_git_hash": SOWN, "cpu_info": SOWN}
    results = test_lm_eval.results({"toy": four}, test_lm_eval.RIGHT, **told)
    return {"samples_toy_2026.jsonl": test_lm_eval.lines(*four), "results_2026.json": results}


def _nvidia() -> dict[str, bytes]:
    header = "timestamp, uuid, name, serial, memory.used [MiB], memory.total [MiB], power.draw [W]"
    row = f"2025/08/19 17:31:19.250, {SEEDS['GPU UUID']}, {SOWN}, {SEEDS['API key']}, 1024 MiB, 143771 MiB, 312.50 W"
    return {"a.csv": f"{header}\n{row}\n".encode()}


def _dcgm() -> dict[str, bytes]:
    labels = (
        f'gpu="0",UUID="{SEEDS["GPU UUID"]}",device="nvidia0",modelName="NVIDIA H200",Hostname="{SEEDS["host name"]}"'
        f',pod="{SEEDS["user name"]}",err_msg="{SOWN}",pci_bus_id="{SEEDS["MAC"]}"'
    )
    return {
        "a.prom": f"# HELP x {SOWN}\nDCGM_FI_DEV_FB_USED{{{labels}}} 1024\nDCGM_FI_DEV_FB_FREE{{{labels}}} 9\n".encode()
    }


GAUGES = """\
vllm:num_requests_running{engine="0",model_name="m"} 1
vllm:num_requests_waiting{engine="0",model_name="m"} 0
"""


def _pages() -> dict[str, bytes]:
    page = (DATA / "probe-vllm-cpu" / "after.prom").read_text() + GAUGES
    page = page.replace('model_name="', f'host="{SEEDS["host name"]}",model_name="{SEEDS["home path"]}/')
    return {"a.prom": (page + f'vllm:cache_config_info{{path="{SOWN}"}} 1\n').encode()}


def _probe() -> dict[str, bytes]:
    """Return the recorded directory, a key more in each of its lines."""
    return {
        f"{name}.jsonl": b"".join(
            json.dumps(json.loads(line)).encode() + b"\n"
            for line in (DATA / "probe-vllm-cpu" / f"{name}.jsonl").read_bytes().splitlines()
        )
        for name in ("weights", "experts", "memory")
    }


def _trace() -> dict[str, bytes]:
    trace = json.loads(gzip.decompress((DATA / "torch-trace-vllm-cpu.json.gz").read_bytes()))
    trace |= {"traceName": SOWN, "hostname": SEEDS["host name"]}
    step = next(event for event in trace["traceEvents"] if str(event.get("name", "")).startswith("execute_context_"))
    ends = step["ts"] + step["dur"]
    trace["traceEvents"] += [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": SOWN}},
        {**step, "name": SOWN, "ts": ends - 20, "dur": 10, "cat": "cpu_op", "args": {"file": SOWN}},
    ]
    return {"a.json": json.dumps(trace).encode()}


def _timeline() -> Values:
    return [
        {"ev": "load_start", "t": 0.0, "wall": 1796056059.0, "host": SOWN},
        {"ev": "request", "t": 1.0, "i": 0, "start": 0.5, "ttft": 0.1, "end": 1.0, "ok": True, "chunks": 4,
         "prompt": SOWN, "err": SOWN, "status": 200, "done": True, "completion_tokens": 4},
        {"ev": "kill", "t": 2.0, "cmd": SOWN},
        {"ev": "health", "t": 2.5, "state": SOWN},
        {"ev": "restart", "t": 3.0, "cmd": SOWN},
        {"ev": "health", "t": 5.0, "state": "200"},
        {"ev": "load_end", "t": 7.0},
    ]  # fmt: skip


KEYED = ("--node", "node-a", "--pseudonym-key", "KEY")
NO_FILE = (
    *("--currency", "USD", "--per-accelerator-hour", "2.49", "--accelerators", "8"),
    *("--dated", "2026-11-30", "--source", "a list"),
)
INPUTS: dict[str, Input] = {
    "vllm-bench": Input(
        lambda: [made.result(generated_texts=[SOWN] * 4, errors=["", "", SOWN, ""], tokenizer_id=SEEDS["home path"])],
        ("--requested-input", "10", "--requested-output", "3", "--ignore-eos", "--utc-offset", "+00:00"),
    ),
    "benchmark-serving": Input(
        lambda: [test_benchmark_serving.document(generated_texts=[SOWN] * 4, errors=["", "", "", SOWN])],
        (
            "--requested-input",
            "5",
            "--requested-output",
            "3",
            "--ignore-eos",
            "--started",
            "2025-08-14T20:00:00Z",
            "--ended",
            "2025-08-14T21:00:00Z",
        ),
    ),
    "guidellm": Input(_guidellm, ("--requested-input", "8", "--requested-output", "5", "--ignore-eos")),
    "sglang-bench": Input(_sglang, (*ASKED, *INTERVAL)),
    "aiperf": Input(
        _aiperf,
        ("--requested-input", "10", "--requested-output", "3", "--ignore-eos", "--endpoint", "chat", "--model", "tiny"),
        closed=("metrics",),
    ),
    "inference-perf": Input(
        _inference_perf, ("--requested-input", "10", "--requested-output", "3", "--ignore-eos", *INTERVAL)
    ),
    "vllm-log": Input(
        None,
        ("--year", "2026", "--utc-offset", "+00:00", "--keep-logs", "--hide", "seedada", "--hide", SEEDS["node name"]),
        raw=_log,
    ),
    "kubectl-pods": Input(_pods, ("--taken", "2026-11-30T16:30:00Z", "--pseudonym-key", "KEY")),
    "kubectl-events": Input(_events, ("--pseudonym-key", "KEY")),
    "reported": Input(lambda: [test_reported.FORK | {"model_id": SEEDS["home path"] + "/M"}], INTERVAL),
    "lm-eval": Input(None, raw=_lm_eval),
    "nvidia-smi": Input(None, ("--utc-offset", "+00:00", *KEYED), raw=_nvidia),
    "dcgm": Input(None, ("--taken", "2026-11-30T16:30:00Z", *KEYED), raw=_dcgm),
    "vllm-metrics": Input(None, ("--taken", "2026-11-30T16:30:00Z", *KEYED), raw=_pages),
    "probe": Input(None, raw=_probe, directory=True),
    "torch-trace": Input(None, raw=_trace),
    "restart-timeline": Input(_timeline, ("--requested-output", "4"), closed=("usage",)),
    "price": Input(None, NO_FILE, raw=dict),
}
