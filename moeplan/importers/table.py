"""Which tools are understood, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from moeplan.importers import benchmark_serving, guidellm, sglang_bench
from moeplan.importers.aiperf import AIPERF_IMPORTER_VERSION, import_aiperf
from moeplan.importers.inference_perf import INFERENCE_PERF_IMPORTER_VERSION, import_inference_perf
from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.importers.vllm_bench import IMPORTER_VERSION, import_vllm_bench

__all__ = ["IMPORTERS", "Importer"]


@attrs.frozen
class Importer:
    """One tool's importer: pure on the file's bytes and the stated inputs.

    Attributes:
        tool: its name, and the collector's in the records.
        version: changes when the same file and inputs give another record.
        title: the command whose output it reads.
        read: returns every trial in one file, in order, at least one; takes its bytes, or the open file if it streams.
        ending: the ending under which a copy of the tool's file is kept: json or jsonl.
        clock: what the file's clock is: ``local`` time, ``epoch`` (UTC), or ``none``, so that it has to be stated.
        summary: the tool's own summary, where it writes one beside the raw file.
        stages: whether a file may hold several loads, of which one can be taken alone.
        varies: whether lengths drawn at random can be told from broken streams, once it is stated that they were.
        streams: whether it reads the file piece by piece, so that it may be larger than memory.
        shows_usage: whether the file shows if the server counted the tokens; else that has to be stated.
    """

    tool: str
    version: str
    title: str
    read: Callable[[Any, TrialInputs], tuple[ImportedTrial, ...]]
    ending: str = "json"
    clock: str = "local"
    shows_usage: bool = True
    summary: str | None = None
    streams: bool = False
    stages: bool = False
    varies: bool = False


def _one(read: Callable[[bytes, TrialInputs], ImportedTrial]) -> Callable[[bytes, TrialInputs], tuple[ImportedTrial]]:
    """Return the reader of a tool whose files hold one trial each."""
    return lambda data, inputs: (read(data, inputs),)


IMPORTERS = {
    importer.tool: importer
    for importer in (
        Importer(
            "vllm-bench", IMPORTER_VERSION, "vllm bench serve --save-result --save-detailed", _one(import_vllm_bench)
        ),
        Importer(
            "benchmark-serving",
            benchmark_serving.IMPORTER_VERSION,
            "benchmark_serving.py --save-result --save-detailed, of vLLM of 2025 and its forks",
            _one(benchmark_serving.import_benchmark_serving),
            clock="none",
            shows_usage=False,
        ),
        Importer(
            "guidellm",
            guidellm.IMPORTER_VERSION,
            "guidellm run, with its JSON report",
            guidellm.import_guidellm,
            clock="epoch",
            shows_usage=False,
            stages=True,
        ),
        Importer(
            "sglang-bench",
            sglang_bench.IMPORTER_VERSION,
            "python -m sglang.bench_serving --output-details",
            sglang_bench.import_sglang_bench,
            "jsonl",
            "none",
            shows_usage=False,
            stages=True,
        ),
        Importer(
            "aiperf",
            AIPERF_IMPORTER_VERSION,
            "aiperf profile, its profile_export.jsonl",
            import_aiperf,
            "jsonl",
            "epoch",
            summary="profile_export_aiperf.json",
            streams=True,
        ),
        Importer(
            "inference-perf",
            INFERENCE_PERF_IMPORTER_VERSION,
            "inference-perf, its per_request_lifecycle_metrics.json",
            import_inference_perf,
            clock="none",
            summary="summary_lifecycle_metrics.json, or every stage_N_lifecycle_metrics.json",
            stages=True,
            varies=True,
        ),
    )
}
