# ruff: noqa: E501
"""What files are known by their structure: one row a format, tried in order, the more telling ones first.

Source: files of the named tools; vLLM 0.10 to 0.32, SGLang 0.5, guidellm 0.3 to 0.8, aiperf 0.8 to 0.13, inference-perf
0.7, lm-evaluation-harness 0.3 and 0.4, MLPerf loadgen 4.1 and 5.1, NVIDIA, AMD and Kubernetes tools.
"""

from __future__ import annotations

import attrs

__all__ = ["FORMATS", "OTHER", "Format"]

SHAPES = ("object", "items", "lines", "text", "binary")


@attrs.frozen
class Format:
    """One format.

    Attributes:
        tool: who writes it, and what it is.
        shape: ``object``: one JSON object; ``items``: a JSON array of objects; ``lines``: JSON Lines, told by the first;
            ``text``: anything else that is text; ``binary``: bytes.
        marks: keys that all stand in the object (a dotted key looks one object deeper); for ``text`` and ``binary`` one
            pattern that the beginning of the file matches somewhere.
        command: action of ``moeplan import`` that reads it; None where none does.
        note: why none does, or what it is good for.
        sure: ``certain`` where the marks are this tool's alone, else ``likely``.
        values: what some keys must hold.
        cut: keys that do where the file was too large to be read to its end, and the others may follow.
    """

    tool: str
    shape: str
    marks: tuple[str, ...]
    command: str | None = None
    note: str = ""
    sure: str = "certain"
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    cut: tuple[str, ...] = ()


_CLAIMS = "figures without raw data: they become claims and satisfy no criterion"
_COMPANION = "stands beside the raw file and goes with it as --summary"
_LATER = "known, and not imported in this release"
_NOT = "no evidence"
_FILES = "part of a checkpoint: 'moeplan checkpoint digest DIR' reads it"
_KUBE = "known, and not imported: it says nothing of the engine's containers"


def _kind(*words: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (("kind", words),)


_BENCH = ("input_lens", "output_lens", "ttfts", "itls", "errors")

_OBJECTS = (
    Format("moeplan document", "object", ("kind", "schemaVersion"), None, "pack it with 'moeplan bundle create'"),
    Format("vllm bench serve, detailed", "object", ("endpoint_type", *_BENCH, "start_times", "latencies"), "vllm-bench",
           cut=("endpoint_type", "failed", "input_lens", "ttfts")),
    Format("SGLang bench_serving, with details", "object", ("total_output_tokens_retokenized", "ttfts"), "sglang-bench"),
    Format("SGLang bench_serving", "object", ("total_output_tokens_retokenized",), "reported", _CLAIMS),
    Format("guidellm report", "object", ("benchmarks", "metadata"), "guidellm"),
    Format("guidellm report, 0.3 or older", "object", ("benchmarks",), None, "run guidellm 0.4 or newer", "likely"),
    Format("benchmark_serving.py, detailed", "object", ("model_id", "duration", *_BENCH), "benchmark-serving",
           cut=("model_id", "duration", "input_lens", "ttfts")),
    Format("vllm bench serve, or benchmark_serving.py of 2025", "object", ("endpoint_type", "model_id", "duration"),
           "reported", _CLAIMS),
    Format("vllm bench serve (bench_serving fork, for vLLM or SGLang)", "object", ("backend", "model_id", "duration"),
           "reported", _CLAIMS),
    Format("InferenceX aggregated result", "object", ("infmax_model_prefix",), "reported", _CLAIMS),
    Format("SGLang bench_serving, as an InferenceX runner sums it up", "object", ("hw", "framework", "metrics"),
           "reported", _CLAIMS, values=(("framework", ("sglang",)),)),
    Format("InferenceX runner summary", "object", ("hw", "framework", "metrics"), "reported", _CLAIMS),
    Format("aiperf export: server metrics", "object", ("aiperf_version", "metrics", "summary"), None, _LATER),
    Format("aiperf export: summary", "object", ("aiperf_version", "input_config"), "reported", _COMPANION),
    Format("aiperf export: summary", "object", ("request_throughput", "input_config"), "reported", _COMPANION, "likely"),
    Format("aiperf export: timeslices", "object", ("timeslices",), None, _LATER, "likely"),
    Format("aiperf export: phases", "object", ("phases.0",), None, _LATER, "likely"),
    Format("inference-perf: report of a stage or of all", "object", ("load_summary", "successes", "failures"), "reported",
           _COMPANION),
    Format("inference-perf: validation of its reports", "object", ("global.warnings", "reports"), None, _NOT),
    Format("lm-evaluation-harness results", "object", ("results", "n-shot"), "lm-eval", "needs its samples files beside it"),
    Format("lm-evaluation-harness results", "object", ("results", "config_general"), None, _CLAIMS, "likely"),
    Format("lm-evaluation-harness results, 0.3", "object", ("results", "versions", "config"), None,
           "older results hold no samples' hashes: figures without raw data"),
    Format("MLPerf power client/server record", "object", ("modules", "timezone"), None, _LATER),
    Format("vLLM GET /server_info", "object", ("vllm_config",), None, "give it to 'moeplan collect environment --server-info'"),
    Format("vLLM POST /weight_checker", "object", ("checksums",), None,
           "digests of parameters after the kernels rearranged them: no digest of a released file"),
    Format("vLLM routed experts of requests", "object", ("choices", "note"), None, _LATER, "likely"),
    Format("vLLM /inference/v1/generate", "object", ("choices",), None, _LATER, "likely"),
    Format("a probe of expert selections", "object", ("counts", "pid", "at"), None,
           "another probe's form; moeplan-vllm-probe writes the one that is imported"),
    Format("a probe of loaded tensors", "object", ("tensors", "files", "at"), None,
           "another probe's form; moeplan-vllm-probe writes the one that is imported"),
    Format("torch profiler trace", "object", ("traceEvents",), "torch-trace"),
    Format("kubectl get pods -o json", "object", ("kind", "apiVersion"), "kubectl-pods", values=_kind("PodList", "Pod")),
    Format("kubectl get events -o json", "object", ("kind", "apiVersion"), "kubectl-events",
           values=_kind("EventList", "Event")),
    Format("kubectl get nodes -o json", "object", ("kind", "apiVersion"), None, _KUBE, values=_kind("NodeList", "Node")),
    Format("kubectl get pods -o json", "object", ("kind", "apiVersion", "items.0.spec.containers"), "kubectl-pods",
           values=_kind("List")),
    Format("kubectl get events -o json", "object", ("kind", "apiVersion", "items.0.involvedObject"), "kubectl-events",
           values=_kind("List")),
    Format("kubectl -o json", "object", ("kind", "apiVersion"), None, _KUBE, "likely"),
    Format("Infera preflight", "object", ("host", "generated", "sections"), None,
           "import it with 'moeplan import infera-preflight', a plugin's format"),
    Format("rocm-smi --json", "object", ("card0",), None, _LATER),
    Format("amd-smi --json", "object", ("gpu_data",), None, "'moeplan collect metrics' reads amd-smi itself"),
    Format("checkpoint's config.json", "object", ("architectures", "model_type"), None, _FILES),
    Format("checkpoint's index", "object", ("weight_map", "metadata"), None, _FILES),
    Format("checkpoint's tokenizer.json", "object", ("added_tokens", "model"), None, _FILES),
    Format("checkpoint's tokenizer_config.json", "object", ("tokenizer_class",), None, _FILES),
    Format("checkpoint's generation_config.json", "object", ("transformers_version",), None, _FILES, "likely"),
)  # fmt: skip

_ITEMS = (
    Format("inference-perf: requests, one by one", "items", ("start_time", "end_time", "request", "info"), "inference-perf"),
    Format("lm-evaluation-harness: rows derived by InferenceX", "items", ("hw", "task", "score"), None,
           "figures without raw data"),
    Format("amd-smi --json", "items", ("gpu", "mem_usage"), None, "'moeplan collect metrics' reads amd-smi itself"),
    Format("amd-smi --json", "items", ("gpu", "power"), None, "'moeplan collect metrics' reads amd-smi itself"),
    Format("a list of sources", "items", ("file", "repo", "licence"), None, _NOT, "likely"),
)  # fmt: skip

_LINES = (
    Format("moeplan collect endpoint, its raw file", "lines", ("format", "version"), None,
           "the run directory beside it holds the records", values=(("format", ("moeplan-endpoint",)),)),
    Format("moeplan collect restart, its raw file", "lines", ("format",), "restart-timeline",
           values=(("format", ("moeplan-restart",)),)),
    Format("moeplan-vllm-probe record", "lines", ("type", "format"), "probe", "give the directory that holds it",
           values=(("format", ("moeplan-probe-record",)),)),
    Format("timeline of a worker's failure", "lines", ("ev", "t", "wall"), "restart-timeline",
           values=(("ev", ("load_start",)),)),
    Format("raw server-sent events of a request", "lines", ("ev", "t", "path"), None, _LATER, "likely"),
    Format("aiperf export: raw requests", "lines", ("metadata", "responses"), None, "profile_export.jsonl is imported"),
    Format("aiperf export: requests, one by one", "lines", ("metadata.request_start_ns", "metrics"), "aiperf"),
    Format("aiperf export: requests, one by one", "lines", ("metadata.request_start_ns", "error"), "aiperf"),
    Format("SGLang bench_serving, with details", "lines", ("total_output_tokens_retokenized", "ttfts"), "sglang-bench"),
    Format("SGLang bench_serving", "lines", ("total_output_tokens_retokenized",), "reported", _CLAIMS),
    Format("lm-evaluation-harness samples", "lines", ("doc_id", "doc", "target"), "lm-eval",
           "needs its results file beside it"),
    Format("vLLM /metrics, scraped again and again", "lines", ("scrape_ts_ms", "text"), "vllm-metrics"),
    Format("a probe of expert selections", "lines", ("counts", "pid", "at"), None,
           "another probe's form; moeplan-vllm-probe writes the one that is imported"),
    Format("routes of single tokens", "lines", ("type", "layer", "topk_ids"), None, _LATER),
    Format("trace of requests to replay", "lines", ("timestamp", "input_length", "output_length"), None,
           "an input: 'moeplan collect endpoint --schedule trace --trace FILE'"),
)  # fmt: skip

_TEXTS = (
    Format("nvidia-smi -q -x", "text", (r"<!DOCTYPE nvidia_smi_log|<nvidia_smi_log>",), None,
           "known, and not imported; poll it with --query-gpu=… --format=csv"),
    Format("nvidia-smi dmon", "text", (r"\A#\s?(Date|gpu)\b.*\b(fb|pwr|sm)\b",), None, _LATER),
    Format("nvidia-smi pmon", "text", (r"\A#\s?gpu\s+pid\b",), None, _LATER),
    Format("aiperf export: server metrics", "text", (r"\A# AIPerf Server Metrics Export",), None, _LATER),
    Format("aiperf export: summary table", "text", (r"\AMetric,avg,min,max",), None, "figures without raw data"),
    Format("aiperf: what it prints", "text", (r"NVIDIA AIPerf \|",), None, "figures without raw data"),
    Format("amd-smi metric --csv", "text", (r"\A(timestamp,)?gpu,(gfx|umc|socket|used_vram|power|mem)",), None,
           "'moeplan collect metrics' reads amd-smi itself"),
    Format("vLLM /metrics, polled to CSV", "text", (r"\Atimestamp_sec,relative_time_sec,kv_cache",), None, _LATER),
    Format("InferenceX trace_replay, requests one by one", "text", (r"\Auser_id,request_idx,trace_id",), None, _LATER),
    Format("nvidia-smi --query-gpu, CSV", "text",
           (r"\A(?=[^\n]*,)[^\n]*\b(power\.draw|memory\.(used|total|free)|utilization\.(gpu|memory)|temperature\.gpu|clocks)"
            r"|\A[^\n]*\[(MiB|W|%|MHz)\]",), "nvidia-smi"),
    Format("nvidia-smi --query-gpu, CSV without header", "text",
           (r"\A[^\n]*(, *\d+ (MiB|%)(,|\s*$)|, *\d+\.\d+ W(,|\s*$))",), "nvidia-smi",
           "without its header nothing says what a column is", "likely"),
    Format("MLPerf loadgen summary", "text", (r"MLPerf Results Summary",), None, "no request's times are in it"),
    Format("MLPerf loadgen detail", "text", (r":::MLLOG ",), None, "no request's times are in it"),
    Format("SPEC PTDaemon power log", "text", (r"\ATime,\d\d-\d\d-\d{4} [^\n]*,Watts,",), None, _LATER),
    Format("DCGM exporter", "text", (r"\bDCGM_FI_",), "dcgm"),
    Format("vLLM /metrics", "text", (r"^vllm:\w+",), "vllm-metrics"),
    Format("SGLang /metrics", "text", (r"^sglang:\w+",), None, _LATER),
    Format("AMD device-metrics-exporter", "text",
           (r"^gpu_(average_package_power|package_power|used_vram|total_(memory|vram)|gfx_activity)\b",), None, _LATER),
    Format("node_exporter", "text", (r"^node_\w+|^# HELP node_|^go_gc_duration_seconds\{",), None, _LATER, "likely"),
    Format("a Prometheus page", "text", (r"^# (HELP|TYPE) \w+|^[a-z_]\w*(:\w+)*(\{[^\n]*\})? [\d.e+-]+( \d{10,})?$",),
           "vllm-metrics", "no engine's names in its beginning", "likely"),
    Format("ib_write_bw (perftest)", "text", (r"RDMA_\w{1,20} (Bidirectional )?(BW|Latency) Test|\APerftest\b",), None, _LATER),
    Format("SGLang bench_serving: what it prints", "text", (r"\bNamespace\(backend='|#Input tokens: \d+",), None,
           "its JSON Lines are imported"),
    Format("vllm bench serve: what it prints", "text",
           (r"Namespace\(subparser='bench'|Serving Benchmark Result",), None,
           "its JSON is imported; the length asked for stands here alone"),
    Format("vLLM server log", "text",
           (r"\((APIServer|EngineCore\w*|Worker\w*|ApiServer\w*) pid=\d+\)|\b(INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d "
            r"\[?[\w/.]+\.py:\d+\]|Waiting for vLLM|vLLM API server version",), "vllm-log"),
    Format("SGLang server log", "text", (r"server_args=ServerArgs\(|Load weight begin\. avail mem",), None, _LATER),
    Format("kubectl get pod -o yaml", "text", (r"^kind: (Pod|PodList)$",), None,
           "write it with -o json: 'moeplan import kubectl-pods'"),
    Format("kubectl get node -o yaml", "text", (r"^kind: (Node|NodeList)$",), None, _KUBE),
    Format("a Kubernetes manifest", "text", (r"^apiVersion: \S+$",), None, "'moeplan lint' judges manifests", "likely"),
    Format("inference-perf: benchmark report", "text", (r"\Aversion: [\d.'\"]+\s+run:",), None, "figures without raw data"),
    Format("inference-perf: configuration", "text", (r"\Aapi:\s+type:|^load:\s+type:",), None, _NOT, "likely"),
    Format("InferenceX configuration", "text",
           (r"\Alabels:\s+[\w-]+:\s+- |^[\w.-]+:\n  image: [^\n]+\n  model: ",), None, _NOT, "likely"),
    Format("a command of a benchmark or a launch", "text",
           (r"\A\S*(aiperf profile|guidellm (run|benchmark)|vllm (serve|bench)|python3? -m (vllm|sglang)\S*|docker run)\b",),
           None, "no evidence; 'moeplan lint' judges launches", "likely"),
    Format("EPLB example in prose", "text", (r"\A# Expert Parallelism Load Balancer",), None, _NOT),
    Format("prose", "text", (r"\A#{1,3} \w",), None, _NOT, "likely"),
    Format("a chat template", "text", (r"\A\{[%#{]",), None, _FILES, "likely"),
)  # fmt: skip

_BINARIES = (
    Format("safetensors", "binary", (r"\A[\s\S]{6}\x00\x00\{",), None, _FILES),
    Format("Parquet", "binary", (r"\APAR1",), None, "raw tables belong to their records"),
    Format(
        "an evidence bundle or another tar", "binary", (r"\A[\s\S]{257}ustar",), None, "'moeplan verify' reads bundles"
    ),
    Format("a zip or npz", "binary", (r"\APK\x03\x04",), None, _NOT, "likely"),
)

FORMATS = (*_OBJECTS, *_ITEMS, *_LINES, *_TEXTS, *_BINARIES)
"""Every format, in the order they are tried."""

OTHER = Format("not known", "text", (), None, "nothing here tells what it is", "guess")
