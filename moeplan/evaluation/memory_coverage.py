"""Was all of it watched, all the time? Every device in every phase, and no hole where it mattered."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs

from moeplan.evaluation.memory_record import MemoryRecord
from moeplan.model.deployment import Deployment
from moeplan.units import NS_PER_S

__all__ = ["HOLE_BEATS", "SLOWEST_BEAT_NS", "Coverage", "coverage"]

HOLE_BEATS = 3
"""More than so many beats without a sample are a hole."""
SLOWEST_BEAT_NS = 10 * NS_PER_S
"""A record cannot make holes vanish by naming a slower beat."""

Span = tuple[int, int]


@attrs.frozen
class Coverage:
    """All memory records of one deployment together.

    Attributes:
        devices: kind by device.
        absent: whether a device or node of the deployment, or of the number planned, is in no record.
        samples: when each device was read, ascending, over all records.
        beats: the beat at which each device was read, with the interval of the record that read it.
        phases: the spans of each phase, over all records.
        spans: the intervals of the records that hold each device.
    """

    devices: dict[str, str]
    absent: bool
    samples: dict[str, list[int]]
    beats: dict[str, list[tuple[Span, int]]]
    phases: dict[str, list[Span]]
    spans: dict[str, list[Span]]

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Return the devices of a kind in order."""
        return tuple(name for name in sorted(self.devices) if self.devices[name] == kind)

    def lack(self, phase: str) -> str | None:
        """Return why a phase is not captured, or None."""
        if self.absent:
            return "device_not_watched"
        spans = self.phases.get(phase, [])
        for device in self.devices:
            times = self.samples.get(device, [])
            if not any(bisect_left(times, start) < bisect_right(times, end) for start, end in spans):
                return "phase_not_captured"
            if phase == "loaded" and any(self.hole(device, span) for span in spans):
                return "series_has_hole"
        return None

    def hole(self, device: str, span: Span, slack_ns: int = 0) -> bool:
        """Return whether a device was not read for too long around or within a span.

        ``slack_ns`` is granted at an end beyond which there is no sample at all.
        """
        around = [beat for (start, end), beat in self.beats.get(device, []) if start < span[1] and span[0] < end]
        times, most = self.samples.get(device, []), HOLE_BEATS * max(around, default=0)
        first, last = bisect_left(times, span[0]), bisect_right(times, span[1])
        before = times[first - 1] if first else span[0] + slack_ns
        after = times[last] if last < len(times) else span[1] - slack_ns
        return any(right - left > most for left, right in pairwise([before, *times[first:last], after]))

    def encloses(self, span: Span) -> bool:
        """Return whether every accelerator was watched over the whole of a span of whole seconds, without a hole."""
        accelerators = self.of_kind("accelerator")
        return bool(accelerators) and all(
            any(start <= span[0] and span[1] <= end for start, end in self.spans[device])
            and not self.hole(device, span, NS_PER_S)
            for device in accelerators
        )


def coverage(records: Sequence[MemoryRecord], deployments: Iterable[Deployment], accelerators: int) -> Coverage:
    """Return what the records watched together.

    Args:
        records: the memory records.
        deployments: what they were made on: the nodes and accelerators it names must all be there.
        accelerators: how many are planned: no fewer may be watched.
    """
    made = Coverage({}, False, {}, {}, {}, {})
    for record in records:
        beat = min(record.payload.poll_interval_ns, SLOWEST_BEAT_NS)
        for device in record.payload.devices:
            kinds = {device.kind, made.devices.get(device.id, device.kind)}
            made.devices[device.id] = min(kinds)  # "accelerator" where records disagree
            made.samples.setdefault(device.id, []).extend(record.samples.get(device.id, ()))
            made.beats.setdefault(device.id, []).append(((record.start_ns, record.end_ns), beat))
            made.spans.setdefault(device.id, []).append((record.start_ns, record.end_ns))
        for phase in record.payload.phases:
            span = (record.start_ns + phase.start_ns, record.start_ns + phase.end_ns)
            made.phases.setdefault(phase.name, []).append(span)
    for times in made.samples.values():
        times.sort()
    absent = len(made.of_kind("accelerator")) < accelerators or not made.of_kind("host")
    for deployment in deployments:
        absent = absent or not set(deployment.accelerators or ()) <= set(made.of_kind("accelerator"))
        absent = absent or not set(deployment.nodes or ()) <= set(made.of_kind("host"))
    return attrs.evolve(made, absent=absent)
