"""The load client inside a pod: one job over standard input, one answer over standard output, named by its digest."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import attrs

from moeplan.collectors.endpoint_connection import Deadlines
from moeplan.collectors.endpoint_metrics import settled_page
from moeplan.collectors.endpoint_raw import ObservedRequest
from moeplan.collectors.endpoint_target import TargetOptions, counted_tokens, open_target
from moeplan.collectors.endpoint_trial import ObservedTrial, run_load
from moeplan.collectors.load_plan import LoadPlan, PlannedRequest
from moeplan.errors import InputError, Issue

__all__ = ["ANSWER", "BOOT", "frame", "load_job", "main", "read_answer", "read_trial"]

ANSWER = b"moeplan-answer"
BOOT = (
    "import sys\n"
    "if sys.version_info < (3, 11): sys.exit('python3 of the image is older than 3.11')\n"
    "import importlib.util, tempfile\n"
    "if importlib.util.find_spec('msgspec') is None: sys.exit('the image lacks the distribution msgspec')\n"
    "size = int(sys.stdin.buffer.readline())\n"
    "program = tempfile.NamedTemporaryFile(suffix='.zip')\n"
    "program.write(sys.stdin.buffer.read(size)); program.flush()\n"
    "sys.path.insert(0, program.name)\n"
    "from moeplan.collectors.pod_client import main\n"
    "main()\n"
)
"""What ``python3 -c`` runs in the pod: the client comes over standard input, in front of its job."""


def load_job(plan: LoadPlan, bodies: Sequence[bytes], deadlines: Deadlines) -> dict[str, Any]:
    """Return the job of sending a plan's requests."""
    return {
        "do": "load",
        "plan": attrs.asdict(plan),
        "bodies": [body.decode("latin-1") for body in bodies],
        "deadlines": attrs.asdict(deadlines),
    }


def frame(answer: Any) -> bytes:
    """Return an answer with its length and SHA-256 before it."""
    data = json.dumps(answer).encode()
    return b"%s %d %s\n%s" % (ANSWER, len(data), hashlib.sha256(data).hexdigest().encode(), data)


def read_answer(printed: bytes) -> Any:
    """Return the answer; kubectl may have put lines of its own before it.

    Raises:
        ValueError: it is not whole.
        InputError: the endpoint did not do what was asked, as the pod's client says.
    """
    start = printed.find(ANSWER + b" ")
    head, _newline, data = printed[max(start, 0) :].partition(b"\n")
    words = head.split()
    if start < 0 or len(words) != 3 or words[1] != b"%d" % len(data):
        raise ValueError("the answer is not whole")
    if words[2] != hashlib.sha256(data).hexdigest().encode():
        raise ValueError("the answer is not the one that was sent: its digest differs")
    answer = json.loads(data)
    if "issues" in answer:
        raise InputError(*(Issue(**issue) for issue in answer["issues"]))
    return answer["value"]


def read_trial(value: Any) -> tuple[int, ObservedTrial]:
    """Return when a load began, in ns of Unix time by the pod's clock, and what was seen of it."""
    requests = tuple(
        ObservedRequest(**{**one, "chunks": tuple((at, tokens) for at, tokens in one["chunks"])})
        for one in value["trial"].pop("requests")
    )
    return value["started_ns"], ObservedTrial(requests, **value["trial"])


async def _done(job: dict[str, Any]) -> Any:
    target = await open_target(TargetOptions(**job["target"]))
    try:
        if job["do"] == "model":
            return target.dialect.model
        if job["do"] == "count":
            return await counted_tokens(target, job["text"])
        if job["do"] == "page":
            page = await settled_page(target.page)
            return None if page is None else page.decode("latin-1")
        bodies = [body.encode("latin-1") for body in job["bodies"]]
        started = time.time_ns()
        seen = await run_load(_plan(job["plan"]), bodies, target.connections, Deadlines(**job["deadlines"]))
        return {"started_ns": started, "trial": attrs.asdict(seen)}
    finally:
        target.close()


def _plan(stated: dict[str, Any]) -> LoadPlan:
    requests = tuple(
        PlannedRequest(one["at_ns"], tuple((name, size) for name, size in one["blocks"]), one["output_tokens"])
        for one in stated["requests"]
    )
    return LoadPlan(stated["schedule"], requests, stated["concurrency"])


def main() -> None:
    """Do the job that standard input holds."""
    job = json.loads(sys.stdin.buffer.read())
    answer: dict[str, Any]
    try:
        answer = {"value": asyncio.run(_done(job))}
    except InputError as error:
        answer = {"issues": [attrs.asdict(issue) for issue in error.issues]}
    sys.stdout.buffer.write(frame(answer))
    sys.stdout.buffer.flush()
