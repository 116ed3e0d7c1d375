"""One record of the probe: JSON Lines, a header first, each line written whole or not at all.

The format is that of ``schema/probe-record-1.schema.json``. Times are nanoseconds of the monotonic clock from the
header's origin; instants of the wall clock are decimal text, because they are beyond what JSON numbers hold exactly.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from moeplan_vllm_probe import VERSION
from moeplan_vllm_probe.faults import ProbeFault
from moeplan_vllm_probe.starts import engine_start, process_start_ns

__all__ = ["FORMAT", "FORMAT_VERSION", "Record"]

FORMAT = "moeplan-probe-record"
FORMAT_VERSION = 1


class Record:
    """A file of one kind, one process and one engine start; opened with its header, and appended to."""

    def __init__(self, directory: Path, kind: str, header: dict[str, Any]) -> None:
        """Create the file with its header line, under its final name only once that line is on disk.

        Raises:
            ProbeFault: the directory takes no file.
        """
        self._origin = time.monotonic_ns()
        wall = time.time_ns()
        self._lock = threading.Lock()
        self._sequence = 0
        self.path = directory / f"{kind}-{wall}-{os.getpid()}.jsonl"
        first = {
            "type": "header",
            "format": FORMAT,
            "formatVersion": FORMAT_VERSION,
            "kind": kind,
            "probe": {"name": "moeplan-vllm-probe", "version": VERSION},
            "origin": {"wallNs": str(wall), "monotonicNs": str(self._origin)},
            "process": {"pid": os.getpid(), "parentPid": os.getppid(), "startedWallNs": _text(process_start_ns())},
            "engineProcess": engine_start(),
        }
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = _create(self.path, _line({**first, **header}))
        except OSError as error:
            raise ProbeFault(
                "directory_not_writable",
                f"no record can be written: {error.strerror}",
                "name another MOEPLAN_PROBE_DIR",
            ) from None

    def write(self, kind: str, **members: Any) -> None:
        """Append one line: its type, its number, both clocks, and ``members``.

        Raises:
            OSError: the line could not be appended.
        """
        with self._lock:
            times = {"timeNs": time.monotonic_ns() - self._origin, "wallNs": str(time.time_ns())}
            data = _line({"type": kind, "seq": self._sequence, **times, **members})
            if os.write(self._file, data) != len(data):
                raise OSError("a line of the probe's record was cut; the disk may be full")
            self._sequence += 1

    def fault(self, fault: ProbeFault) -> None:
        """Append a fault."""
        self.write("fault", code=fault.code, message=fault.message, next=fault.next)

    def since_origin(self, monotonic_ns: int) -> int:
        """Return an instant of the monotonic clock as the record's lines have it, in nanoseconds."""
        return monotonic_ns - self._origin


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def _create(path: Path, data: bytes) -> int:
    """Return the descriptor of a new file that holds ``data`` and is appended to."""
    temporary = path.with_name(f".{path.name}.new")
    file = os.open(temporary, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, data)
        os.replace(temporary, path)
    except OSError:
        os.close(file)
        raise
    return file
