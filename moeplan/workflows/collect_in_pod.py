"""Load an endpoint from a pod beside it: the pod sends and keeps times, this machine makes prompts and records."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import attrs

import moeplan.errors
from moeplan.collectors.endpoint_address import parse_address
from moeplan.collectors.endpoint_connection import Connections
from moeplan.collectors.endpoint_metrics import MetricsPage
from moeplan.collectors.endpoint_requests import Dialect
from moeplan.collectors.endpoint_target import Target
from moeplan.collectors.endpoint_trial import ObservedTrial
from moeplan.collectors.journal import Journal
from moeplan.collectors.load_plan import LoadPlan
from moeplan.collectors.pod_client import BOOT, load_job, read_answer, read_trial
from moeplan.errors import InputError, Issue
from moeplan.site.load_pod import LoadPod
from moeplan.wire.observation import ObservationContext
from moeplan.workflows.collect_endpoint import CollectedRun, EndpointCollection, EndpointRun, run_until_stopped

__all__ = ["client_program", "collect_in_pod"]

_ROOMS = ("collectors", "wire", "model")
_SHORT_S = 180


def collect_in_pod(
    run: EndpointRun,
    pod: LoadPod,
    context: ObservationContext,
    output: Path | str,
    say: Callable[[str], None] = lambda _text: None,
    trial_deadline_s: int = 3600,
) -> CollectedRun:
    """Run every trial from a pod that is made for it; as :func:`collect_endpoint` otherwise.

    Args:
        run: what to do; the endpoint is named as the pod reaches it.
        pod: made, and deleted at the end whatever happens.
        context: plan and deployment that the records name.
        output: directory to make; missing or empty.
        say: told how far it is.
        trial_deadline_s: time for one trial's requests, in seconds.

    Raises:
        InputError: the pod does not run, ``kubectl exec`` breaks, or the endpoint does not answer. Trials that ended
            before lie in the directory, and its run is open.
        StoreError: the directory cannot be written.
    """
    if run.target.ca_file is not None:
        raise InputError(Issue("--ca-file", "usage", "the pod has no such file", "certificates that its image trusts"))
    return run_until_stopped(_PodCollection(run, pod, context, output, say, trial_deadline_s).collect())


@cache
def client_program() -> bytes:
    """Return the client as a zip that Python imports from: modules of moeplan, and attrs, which is pure Python."""
    root, made = Path(str(moeplan.errors.__file__)).parent, io.BytesIO()
    attr = Path(str(attrs.__file__)).parents[1]
    files = [*root.glob("*.py"), *(path for room in _ROOMS for path in (root / room).rglob("*.py"))]
    named = [(path.relative_to(root.parent), path) for path in files]
    named += [(path.relative_to(attr), path) for name in ("attr", "attrs") for path in (attr / name).glob("*.py")]
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(named):
            archive.writestr(zipfile.ZipInfo(name.as_posix()), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return made.getvalue()


class _PodCollection(EndpointCollection):
    def __init__(
        self,
        run: EndpointRun,
        pod: LoadPod,
        context: ObservationContext,
        output: Path | str,
        say: Callable[[str], None],
        trial_deadline_s: int,
    ) -> None:
        super().__init__(run, context, output, say)
        self._pod, self._options, self._trial_deadline_s = pod, run.target, trial_deadline_s

    async def collect(self) -> CollectedRun:
        try:
            return await super().collect()
        finally:
            self._pod.delete(self._say)

    async def _trial(self, target: Target, number: int, journal: Journal) -> bool:
        try:
            return await super()._trial(target, number, journal)
        except InputError:
            self._abort(number, None, journal)
            raise

    async def _ask(self, job: dict[str, Any], timeout_s: int = _SHORT_S) -> Any:
        program = client_program()
        stated = json.dumps({"target": attrs.asdict(self._options), **job}).encode()
        sent = b"%d\n%s%s" % (len(program), program, stated)
        printed = await asyncio.to_thread(self._pod.ask, BOOT, sent, timeout_s)
        try:
            return read_answer(printed)
        except ValueError as error:
            step = "run it again; nothing of it is evidence"
            raise InputError(Issue("--kube-context", "exec_died", str(error), "a whole answer", None, step)) from None

    async def _open(self) -> Target:
        self._say(f"making the pod {self._pod.name}")
        await asyncio.to_thread(self._pod.start)
        model = await self._ask({"do": "model"}, _SHORT_S + self._options.ready_within_s)
        self._options = attrs.evolve(self._options, model=model)
        address, options = parse_address(self._options.url), self._options
        connections = Connections(address, None)  # never used here: the pod connects
        dialect = Dialect(options.api, model, options.ignore_eos, options.continuous_usage)
        page = MetricsPage(connections, address, "/metrics", None, model)
        return Target(address, connections, dialect, page, options.key)

    async def _counted(self, _target: Target, text: str) -> int | None:
        count: int | None = await self._ask({"do": "count", "text": text})
        return count

    async def _page(self, _target: Target) -> bytes | None:
        page = await self._ask({"do": "page"})
        return None if page is None else page.encode("latin-1")

    async def _load(
        self,
        _target: Target,
        plan: LoadPlan,
        bodies: Sequence[bytes],
        _done: Callable[[int], None] = lambda _count: None,
    ) -> tuple[int, ObservedTrial]:
        job = load_job(plan, bodies, self._run.deadlines)
        return read_trial(await self._ask(job, self._trial_deadline_s))
