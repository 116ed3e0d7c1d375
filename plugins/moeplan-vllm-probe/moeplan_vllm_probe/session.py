"""One worker under observation, from its construction to its end."""

from __future__ import annotations

from functools import partial
from typing import Any

from moeplan_vllm_probe.counting import Counters, TokenView, refuse_unknown_layout
from moeplan_vllm_probe.experts import ExpertRecord
from moeplan_vllm_probe.faults import LOGGER, ProbeFault
from moeplan_vllm_probe.hashing import Hashing
from moeplan_vllm_probe.hooks import method_of
from moeplan_vllm_probe.identity import identity, parallel_ranks
from moeplan_vllm_probe.intervals import Intervals
from moeplan_vllm_probe.layers import routed_layers
from moeplan_vllm_probe.memory import memory_of
from moeplan_vllm_probe.record import Record
from moeplan_vllm_probe.steps import Steps
from moeplan_vllm_probe.switches import Switches

__all__ = ["Session"]


class Session:
    """What the probe does at each turn of a worker's life; the worker's own methods are called in between."""

    def __init__(self, switches: Switches, compile_cache: dict[str, object] | None, iterators: list[str]) -> None:
        """Take what is switched on and what was done before there was a worker."""
        self._switches = switches
        self._compile_cache = compile_cache
        self._iterators = iterators
        self._worker: Any = None
        self._records: dict[str, Record] = {}
        self._experts: ExpertRecord | None = None
        self._counters: Counters | None = None
        self._intervals: Intervals | None = None
        self._layers: list[dict[str, Any]] = []
        self.steps: Steps | None = None
        self.hashing = Hashing(lambda: self._record("weights"))

    def watch(self, worker: Any) -> None:
        """Take a worker that was just constructed."""
        self._worker = worker

    def loaded(self) -> None:
        """Close the digests and attach the counters: the model is loaded and has not run yet."""
        if self._switches.hash:
            self._guard("weights", self.hashing.close)
        if self._switches.count:
            self._guard("experts", self._attach)
        if self._switches.memory:
            self._memory("loaded")

    def warmed_up(self) -> None:
        """Test the counters and begin the intervals: the engine is about to serve."""
        if self._experts is not None:
            synthetic = method_of(self._worker, "execute_dummy_batch")
            self._guard("experts", partial(self._experts.self_test, synthetic))
        if self.steps is not None:
            self.steps.ready()
        if self._experts is not None:
            self._experts.begin()
        if self._switches.memory:
            self._memory("ready")
        calls = [self._experts.line] if self._experts is not None else []
        calls += [lambda: self._memory("serving")] if self._switches.memory else []
        if calls:
            self._intervals = Intervals(self._switches.interval_ms, calls)
            self._intervals.start()

    def closed(self) -> None:
        """Write the last lines: the worker is about to end."""
        if self._intervals is not None:
            self._intervals.stop()
            self._intervals = None

    def _attach(self) -> None:
        worker = self._worker
        refuse_unknown_layout(worker.parallel_config)
        if getattr(worker.device, "type", "cpu") not in {"cpu", "cuda"}:
            raise ProbeFault("device_unknown", f"the device is {worker.device}", "count on CPUs, CUDA or ROCm")
        registered = getattr(worker.compilation_config, "static_forward_context", None) or {}
        layers = routed_layers(worker.model_runner.get_model(), registered)
        if not layers:
            raise ProbeFault(
                "no_router",
                "the model was loaded and no router was found in it",
                "count only mixture-of-experts models",
            )
        tensor = parallel_ranks()["tensorParallel"]
        view = TokenView(worker.parallel_config, tensor["rank"] if tensor else 0)
        self._counters = Counters(layers, worker.device, view)
        self.steps = Steps(self._counters, worker.device)
        self._layers = [{"layer": index, **layer.as_json()} for index, layer in enumerate(layers)]
        self._tokens = "shard" if view.sharded else "rank"
        self._experts = ExpertRecord(self._record("experts"), self._counters, self.steps)

    def _memory(self, phase: str) -> None:
        worker = self._worker
        probe = 0 if self._counters is None else self._counters.bytes
        self._record("memory").write("memory", phase=phase, **memory_of(worker.model_runner, worker.device, probe))

    def _guard(self, kind: str, call: Any) -> None:
        """Call; a fault is written to the record of its kind and stops the engine unless that is not wanted."""
        try:
            call()
        except ProbeFault as fault:
            self._record(kind).fault(fault)
            if not self._switches.lenient:
                raise
            LOGGER.error("%s (going on, MOEPLAN_PROBE_LENIENT=1)", fault)

    def _record(self, kind: str) -> Record:
        """Return the record of a kind; its header is written with its first line."""
        if kind not in self._records:
            assert self._switches.directory is not None, "read_switches asks for a directory"
            header = identity(self._worker, self._switches)
            if kind == "weights":
                header["iterators"] = self._iterators
            if kind == "experts":
                header.update(
                    layers=self._layers, tokens=getattr(self, "_tokens", None), compileCache=self._compile_cache
                )
            self._records[kind] = Record(self._switches.directory, kind, header)
        return self._records[kind]
