"""What the pod or the script around an engine must give it: interfaces, shared memory, probes, time, variables."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan_vllm.families import family_of
from moeplan_vllm.rules.placing import gpus_of_node, is_multi_node
from moeplan_vllm.rules.reading import count, flag, look, place_of

from moeplan.facts.judge import Hit
from moeplan.facts.launches import Scene, Subject
from moeplan.facts.values import Value
from moeplan_vllm_cuda.recipes import find_variant

__all__ = ["interfaces", "probes", "ready_timeout", "shared_memory", "stage_timeout", "storage"]

_TIMEOUT = "environment VLLM_ENGINE_READY_TIMEOUT_S"
_DEFAULT_TIMEOUT = 600
"""Seconds. Source: vLLM 0.27.1 wheel, envs.py."""
_STEP_DEFAULT, _STEP_SECONDS = 300, 1800
"""Seconds of a step: the default (vLLM 0.27.1 wheel, envs.py), and with pipeline stages (fact C-NET-011)."""
_LARGE_GB = 500
_LARGE_TIMEOUT = 3600
"""Seconds for what is larger than that. Source: fact C-TIM-001."""
_LEAST_SHM, _GOOD_SHM = 2**30, 16 * 2**30
_NFS_BYTES_PER_1000_SECONDS = 270 * 10**9
"""Source: fact C-TIM-003: about 0.27 GB/s over NFS."""


def interfaces(scene: Scene) -> Iterator[Hit]:
    """C-NET-001: every engine over several nodes has Gloo's and NCCL's interface pinned."""
    for one in scene.engines():
        if is_multi_node(one) is not True:
            continue
        names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
        missing = [name for name in names if look(one, f"environment {name}").state == "absent"]
        if missing:
            message = f"{' and '.join(missing)} not set for an engine over several nodes"
            yield Hit(place_of(one, f"environment {missing[0]}"), message, one, _interface_severity(one))


def _interface_severity(subject: Subject) -> str | None:
    """Return how sure it is: the host's many interfaces mislead; a script's variables may be set elsewhere."""
    if subject.document is None:
        return "warning"
    return None if subject.template is not None and subject.template.host_network else "info"


def shared_memory(scene: Scene) -> Iterator[Hit]:
    """C-NET-010: a container with several GPUs has memory, and enough of it, at /dev/shm."""
    for one in scene.engines():
        if one.container is None or not _several_gpus(one) or look(one, "pod hostIPC").value is True:
            continue
        mount, size = look(one, "mount /dev/shm"), look(one, "derived shm-bytes")
        kind, medium = look(one, "mount /dev/shm kind").value, look(one, "mount /dev/shm source.medium").value
        if mount.state == "absent":
            yield Hit(mount.place or one.place(), "nothing is mounted at /dev/shm, which then has 64 MB", one)
        elif kind == "emptyDir" and medium != "Memory":
            yield Hit(mount.place or one.place(), "the volume at /dev/shm is not of medium Memory", one)
        elif size.is_known and size.value < _GOOD_SHM:
            severity = None if size.value < _LEAST_SHM else "warning"
            yield Hit(mount.place or one.place(), f"the volume at /dev/shm has {size.value} bytes", one, severity)


def _several_gpus(subject: Subject) -> bool:
    gpus = gpus_of_node(subject) if look(subject, "derived accelerators").is_known else None
    ranks = count(subject, "--tensor-parallel-size", 1) or 1
    return (gpus if gpus is not None else ranks * (count(subject, "--pipeline-parallel-size", 1) or 1)) > 1


def _expected(scene: Scene) -> int | None:
    seconds = scene.site.get("expectedReadySeconds")
    return seconds if isinstance(seconds, int) else None


def _timeout(subject: Subject) -> int | None:
    value = look(subject, _TIMEOUT)
    if value.state == "absent":
        return _DEFAULT_TIMEOUT
    text = str(value.value) if value.is_known else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None


def stage_timeout(scene: Scene) -> Iterator[Hit]:
    """C-NET-011: with pipeline stages a step may take long; Kimi-K3's profile says so, of others it is not sure."""
    field = "environment VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS"
    for one in scene.engines():
        stages, value = count(one, "--pipeline-parallel-size", 1), look(one, field)
        text = str(value.value) if value.is_known else str(_STEP_DEFAULT) if value.state == "absent" else ""
        seconds = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
        if stages is None or stages < 2 or seconds is None or seconds >= _STEP_SECONDS or one.model_name is None:
            continue
        message = f"VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS is {value.shown()} ({seconds} s) with {stages} pipeline stages"
        severity = None if family_of(one.model_name) == "kimi-k3" else "info"
        yield Hit(place_of(one, field), message, one, severity)


def ready_timeout(scene: Scene) -> Iterator[Hit]:
    """C-TIM-001: the engine's own timeout covers the load that is expected, or that its size makes likely."""
    expected = _expected(scene)
    for one in scene.engines():
        seconds = _timeout(one)
        if seconds is None or flag(one, "--headless"):
            continue
        if expected is not None and seconds < expected:
            severity = "warning" if one.document is None and look(one, _TIMEOUT).state == "absent" else None
            message = (
                f"VLLM_ENGINE_READY_TIMEOUT_S is {look(one, _TIMEOUT).shown()} ({seconds} s), {expected} s are expected"
            )
            yield Hit(place_of(one, _TIMEOUT), message, one, severity)
        elif expected is None and seconds < _LARGE_TIMEOUT and _gigabytes(one) > _LARGE_GB:
            message = f"VLLM_ENGINE_READY_TIMEOUT_S is {look(one, _TIMEOUT).shown()} for about {_gigabytes(one)} GB"
            yield Hit(place_of(one, _TIMEOUT), message, one, "info")


def _gigabytes(subject: Subject) -> int:
    size = None if subject.model is None else subject.model.get("tensorBytes")
    if isinstance(size, int):
        return size // 10**9
    found = None if subject.model_name is None else find_variant(subject.model_name)
    return 0 if found is None else found[1].least_gigabytes


def probes(scene: Scene) -> Iterator[Hit]:
    """C-TIM-002: liveness waits for a startup probe, whose budget covers the load."""
    expected = _expected(scene)
    for one in scene.engines():
        startup, budget = look(one, "container startupProbe"), look(one, "derived startup-budget-seconds")
        liveness = look(one, "container livenessProbe")
        if startup.state == "absent" and liveness.is_known:
            delay = _delay(liveness)
            if expected is None or delay < expected:
                message = f"a livenessProbe after {delay} s and no startupProbe"
                yield Hit(liveness.place or one.place(), message, one)
        elif expected is not None and budget.is_known and budget.value < expected:
            message = f"the startupProbe allows {budget.value} s, {expected} s are expected"
            yield Hit(startup.place or one.place(), message, one)


def _delay(liveness: Value) -> int:
    delay = liveness.value.get("initialDelaySeconds", 0) if isinstance(liveness.value, dict) else 0
    return delay if isinstance(delay, int) else 0


def storage(scene: Scene) -> Iterator[Hit]:
    """C-TIM-003: over NFS the load takes longer than the engine or its probe waits."""
    stated = scene.site.get("modelStorage")
    if not isinstance(stated, str) or "nfs" not in stated.lower():
        return
    for one in scene.engines():
        gigabytes = _gigabytes(one)
        seconds = -(-gigabytes * 10**9 * 1000 // _NFS_BYTES_PER_1000_SECONDS)
        budget = look(one, "derived startup-budget-seconds")
        limits = [limit for limit in (_timeout(one), budget.value if budget.is_known else None) if limit is not None]
        short = bool(gigabytes) and any(limit < seconds for limit in limits)
        told = f"about {gigabytes} GB over NFS take about {seconds} s" if gigabytes else "weights are read over NFS"
        yield Hit(place_of(one, "launch model"), told, one, None if short else "info")
