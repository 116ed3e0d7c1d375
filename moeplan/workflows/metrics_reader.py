"""What the sources of a run answer, read beat by beat into rows: collect and import, joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from moeplan.collectors.host_memory import engine_processes, host_memory, memory_limit, tree_memory
from moeplan.collectors.metrics_phases import PhaseMarks, phase_of
from moeplan.collectors.metrics_poll import Answer
from moeplan.errors import InputError
from moeplan.importers.amd_smi import amd_readings
from moeplan.importers.dcgm import dcgm_readings, is_dcgm
from moeplan.importers.device_rows import DeviceReading, DeviceRows
from moeplan.importers.engine_page import EnginePages, EngineState
from moeplan.importers.nvidia_smi import QUERY, read_nvidia_smi
from moeplan.model import memory_metrics as names
from moeplan.model.observations import MemoryDevice
from moeplan.model.pseudonyms import pseudonym
from moeplan.model.series_rows import SeriesRow, SeriesRows
from moeplan.wire.prometheus_text import parse_exposition

__all__ = ["MetricsReader", "PageOf", "Watched"]


@attrs.frozen
class PageOf:
    """An endpoint as rows name it: what its pseudonym is made of, and the role it serves."""

    origin: str
    role: str | None


@attrs.frozen
class Watched:
    """What is watched on this node.

    Attributes:
        node: its pseudonym.
        key: key of the pseudonyms of devices and processes.
        pid: the engine's process; None looks for it anew at each beat.
        process_name: a text of its command line; None looks for vLLM's server.
        cpu_engine: the engine runs on CPUs: its processes' memory is the accelerator's.
    """

    node: str
    key: bytes
    pid: int | None = None
    process_name: str | None = None
    cpu_engine: bool = False

    @property
    def cpu(self) -> str:
        """The name of the accelerator that the CPUs are."""
        return f"{self.node}-cpu"


class MetricsReader:
    """Reads answers in order of time; rows have absolute times until the run is over."""

    def __init__(self, watched: Watched, pages: list[PageOf], gpu_form: str | None) -> None:
        """Take what is watched, the endpoints in order, and the form of the last source: ``nvidia`` or ``amd``."""
        self._watched, self._gpu_form = watched, gpu_form
        self._engine, self._proc = SeriesRows("vllm-metrics"), SeriesRows("procfs")
        self._gpu, self._dcgm = SeriesRows(f"{gpu_form}-smi"), SeriesRows("dcgm-exporter")
        self._pages = [
            EnginePages(self._engine, pseudonym(watched.key, "process", page.origin), page.role) for page in pages
        ]
        self._kinds: list[str | None] = [None for _ in pages]
        self._in_flight: list[int | None] = [None for _ in pages]
        self._running = False
        self._devices = DeviceRows(self._gpu, watched.key, watched.node)
        self._exported = DeviceRows(self._dcgm, watched.key, watched.node)
        self.marks = PhaseMarks()
        self.starts: dict[str, int] = {}
        """Engine starts by the text of the page that told them, in nanoseconds since 1970."""
        self.failures: Counter[str] = Counter()
        """How often each kind of source answered nothing that could be read."""
        self.served = False
        """Whether requests were in flight at some beat."""
        self.gone = False
        """Whether the engine served, and now no endpoint answers and no process of it is seen."""

    def begin(self, time_ns: int) -> None:
        """Read the node's memory and the engine's, now."""
        self._running = self._host(time_ns)

    def take(self, time_ns: int, answers: Mapping[int, Answer]) -> None:
        """Read the answers that came since the last beat: those of the endpoints, and the tool's.

        An endpoint that is slow to answer is in flight with what it last told.
        """
        for number, answer in sorted(answers.items()):
            if number < len(self._pages):
                state = self._page(number, answer)
                self._in_flight[number] = None if state is None else state.in_flight
            else:
                self._tool(answer)
        kinds = zip(self._in_flight, self._kinds, strict=True)
        in_flight = [value for value, kind in kinds if kind != "dcgm"]
        self.marks.mark(time_ns, phase_of(in_flight, self._running))
        self.served = self.served or any(in_flight)
        self.gone = self.served and not self._running and not any(value is not None for value in in_flight)

    def rows(self) -> list[SeriesRow]:
        """Return the rows of all sources, times in nanoseconds since 1970."""
        return [*self._engine.rows, *self._proc.rows, *self._gpu.rows, *self._dcgm.rows]

    def devices(self) -> list[MemoryDevice]:
        """Return the devices in order of their names; the node's own memory is always one."""
        host, found = host_memory(), {}
        found[self._watched.node] = MemoryDevice(self._watched.node, "host", None if host is None else host.total_bytes)
        if self._watched.cpu_engine:
            found[self._watched.cpu] = MemoryDevice(self._watched.cpu, "accelerator", memory_limit())
        for device in [*self._exported.devices(), *self._devices.devices()]:
            found[device.id] = device
        return [found[name] for name in sorted(found)]

    def _page(self, number: int, answer: Answer) -> EngineState | None:
        try:
            samples = None if answer.data is None else parse_exposition(answer.data)
        except InputError:
            samples = None
            self.failures["unreadable page"] += 1
        if samples is not None and is_dcgm(samples):
            self._kinds[number] = "dcgm"
            self._exported.read(answer.time_ns, dcgm_readings(samples))
            return None
        if samples is None:
            if self._kinds[number] == "dcgm":
                self._exported.failed(answer.time_ns)
            else:
                self._pages[number].failed(answer.time_ns)
            return None
        state = self._pages[number].read(answer.time_ns, samples)
        self._kinds[number] = "engine"
        if state.in_flight is None:
            self.failures["page without an engine's gauges"] += 1
        elif state.started is not None and state.started_ns is not None:
            self.starts[state.started] = state.started_ns
        return state

    def _tool(self, answer: Answer) -> None:
        readings: list[DeviceReading] | None = None
        if answer.data is not None:
            try:
                readings = _readings(self._gpu_form, answer.data)
            except InputError:
                self.failures["unreadable output of the tool"] += 1
        else:
            self.failures["no output of the tool"] += 1
        if readings is None:
            self._devices.failed(answer.time_ns)
        else:
            self._devices.read(answer.time_ns, readings)

    def _host(self, time_ns: int) -> bool:
        """Add the node's memory, and the engine's; return whether a process of an engine is seen."""
        watched, host = self._watched, host_memory()
        if host is None:
            self._proc.unread(time_ns, watched.node, names.USED, "bytes", "failed")
        else:
            self._proc.add(time_ns, watched.node, names.USED, host.used_bytes, "bytes")
        pids = engine_processes(watched.pid, watched.process_name)
        if watched.cpu_engine:
            tree = tree_memory(pids)
            self._proc.add(time_ns, watched.cpu, names.USED, tree.used_bytes, "bytes")
            self._proc.add(time_ns, watched.cpu, names.HIGH_WATER, tree.high_water_bytes, "bytes")
        return bool(pids)


def _readings(form: str | None, data: bytes) -> list[DeviceReading]:
    if form == "amd":
        return amd_readings("amd-smi", data)
    return [row.reading for row in read_nvidia_smi("nvidia-smi", data, QUERY)]
