"""Pods and events as kubectl writes them: images and restarts per node, warnings as counts, no name of anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moeplan.errors import InputError
from moeplan.importers.kubectl_events import import_kubectl_events
from moeplan.importers.kubectl_pods import import_kubectl_pods
from moeplan.model.deployment import Deployment, RuntimeIdentity
from moeplan.model.observations import EngineLog, Environment
from moeplan.model.pseudonyms import pseudonym
from moeplan.model.series import SeriesTable, series_faults
from moeplan.wire.closed_table import load_table
from moeplan.wire.observation import MadeObservation, ObservationContext
from moeplan.wire.series import SERIES

SAMPLES = Path(__file__).resolve().parents[3].parent / "shared" / "samples" / "public" / "k8s"
KEY = b"k" * 32
AT = "2026-11-30T16:30:00Z"
DIGEST = "sha256:" + "ab" * 32
CONTEXT = ObservationContext(
    DIGEST, Deployment(DIGEST, None, (RuntimeIdentity("serve", "oci_image", DIGEST),), None, None, None, None, None)
)


def pod(name: str, node: str | None, restarts: int = 0, reason: str | None = None) -> dict[str, Any]:
    state = {} if reason is None else {"lastState": {"terminated": {"reason": reason}}}
    container = {"name": "ada-engine", "imageID": f"r/x@{DIGEST}", "restartCount": restarts, **state}
    spec = {} if node is None else {"nodeName": node}
    metadata = {"name": name, "namespace": "ada-prod"}
    status = {"phase": "Running", "containerStatuses": [container]}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def listed(*items: dict[str, Any], kind: str = "List") -> bytes:
    return json.dumps({"kind": kind, "items": list(items)}).encode()


def environment(made: MadeObservation) -> Environment:
    assert isinstance(made.record.payload, Environment)
    return made.record.payload


def series(made: MadeObservation) -> SeriesTable:
    path = made.record.attachments[0].path
    assert path is not None
    table = load_table(SERIES, made.files[path])
    assert list(series_faults(table, made.record.duration_ns)) == []
    return table


class TestPods:
    def test_one_environment_a_node_with_every_image(self) -> None:
        data = listed(pod("p0", "gpu-1"), pod("p1", "gpu-2", 2, "OOMKilled"), pod("p2", "gpu-2"))
        made, findings = import_kubectl_pods(data, CONTEXT, AT, node=None, key=KEY)
        by_node = {environment(one).node: environment(one) for one in made}
        assert set(by_node) == {pseudonym(KEY, "node", "gpu-1"), pseudonym(KEY, "node", "gpu-2")}
        facts = {fact.name: fact.value for fact in by_node[pseudonym(KEY, "node", "gpu-2")].facts}
        assert facts["pod-0-container-0-image"] == facts["pod-1-container-0-image"] == DIGEST
        assert (facts["pod-0-container-0-restarts"], facts["pod-0-container-0-reason"]) == ("2", "OOMKilled")
        alone = {fact.name: fact.value for fact in by_node[pseudonym(KEY, "node", "gpu-1")].facts}
        assert alone["container-0-image"] == DIGEST
        assert {finding.code for finding in findings} == {"restarted", "container_stopped"}

    def test_no_name_enters_a_record(self) -> None:
        made, _findings = import_kubectl_pods(listed(pod("p0", "gpu-1")), CONTEXT, AT, node=None, key=KEY)
        everything = b"".join(made[0].files.values())
        for name in (b"ada", b"gpu-1", b"p0"):
            assert name not in everything

    @pytest.mark.parametrize(
        ("data", "node", "key", "code"),
        [
            (listed(pod("p", None)), "node-a", None, "pod_without_node"),
            (listed(pod("p", "a"), pod("q", "b")), "node-a", None, "several_nodes"),
            (listed(pod("p", "a")), None, None, "usage"),
            (b"{}", "node-a", None, "pod_without_node"),
        ],
    )
    def test_what_cannot_be_placed_is_refused(
        self, data: bytes, node: str | None, key: bytes | None, code: str
    ) -> None:
        with pytest.raises(InputError) as refused:
            import_kubectl_pods(data, CONTEXT, AT, node=node, key=key)
        assert refused.value.issues[0].code == code

    @pytest.mark.shared
    @pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared samples are not here")
    def test_recorded_pods(self) -> None:
        for name in ("kuard-pods-list.json", "troubleshoot-pods-message-oomkill-pod.json"):
            made, _findings = import_kubectl_pods((SAMPLES / name).read_bytes(), CONTEXT, AT, node=None, key=KEY)
            assert len(made) == 1
            assert b"minikube" not in b"".join(made[0].files.values())


def event(reason: str, time: str, count: int | None = 1, kind: str = "Pod", **more: Any) -> dict[str, Any]:
    about = {"kind": kind, "namespace": "ada-prod", "name": "gpu-7" if kind == "Node" else "engine-0"}
    values = {"reason": reason, "type": "Warning", "lastTimestamp": time, "count": count, "message": "ada did it"}
    return {"kind": "Event", "involvedObject": about, **values, **more}


class TestEvents:
    def test_warnings_are_counted_and_a_kill_for_memory_is_fatal(self) -> None:
        data = listed(
            event("BackOff", "2026-11-30T16:00:05Z", 7),
            event("OOMKilling", "2026-11-30T16:00:10Z", None, "Node"),
            event("Scheduled", "2026-11-30T16:00:00Z", type="Normal"),
            event("Failed Name", "2026-11-30T16:00:00Z"),
        )
        made, findings = import_kubectl_events(data, CONTEXT, KEY)
        table = series(made)
        rows = list(zip(table.time_ns, table.subject, table.metric, table.value, strict=True))
        engine, node = pseudonym(KEY, "process", "ada-prod/engine-0"), pseudonym(KEY, "node", "gpu-7")
        assert rows == [
            (5 * 10**9, engine, "event_backoff", 7),
            (10 * 10**9, node, "fatal_killed_for_memory", 1),
        ]
        assert isinstance(made.record.payload, EngineLog)
        assert (made.record.payload.engine, made.record.payload.line_count) == ("kubernetes", 4)
        assert [finding.message for finding in findings] == ["BackOff: 7 time(s)", "OOMKilling: 1 time(s)"]
        assert b"ada" not in b"".join(made.files.values())

    def test_newer_events_have_their_time_elsewhere(self) -> None:
        one = event("Unhealthy", "x", lastTimestamp=None, eventTime="2026-11-30T16:00:05.250000Z")
        assert list(series(import_kubectl_events(listed(one), CONTEXT, KEY)[0]).time_ns) == [250_000_000]

    @pytest.mark.parametrize("items", [[], [event("BackOff", "yesterday")], [{"kind": "Event", "reason": 3}]])
    def test_nothing_to_tell_is_refused(self, items: list[dict[str, Any]]) -> None:
        with pytest.raises(InputError) as refused:
            import_kubectl_events(listed(*items, kind="EventList"), CONTEXT, KEY)
        assert refused.value.issues[0].code == "no_events"

    @pytest.mark.shared
    @pytest.mark.skipif(not SAMPLES.is_dir(), reason="the shared samples are not here")
    def test_recorded_events(self) -> None:
        data = (SAMPLES / "troubleshoot-events-message-pod-init-crashloop-backoff.json").read_bytes()
        made, _findings = import_kubectl_events(data, CONTEXT, KEY)
        wanted = sum(item.get("count") or 1 for item in json.loads(data)["items"] if item["type"] == "Warning")
        assert sum(series(made).value) == wanted
