"""``docker run`` (podman, nerdctl) as the container it starts, in the terms of a pod, so that one rule fits both."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from moeplan.manifests.commands import Command, Word
from moeplan.manifests.containers import Container, EnvVar, Mount
from moeplan.manifests.pod_templates import PodTemplate, Volume

__all__ = ["DockerRun", "bind_mount", "read_docker_run"]

_PROGRAMS = frozenset(("docker", "podman", "nerdctl"))
_WITH_VALUE = frozenset(
    re.split(
        r"\s+",
        """--add-host --annotation --blkio-weight --cap-add --cap-drop --cgroup-parent --cidfile --cpu-period
--cpu-quota --cpu-shares --cpus --cpuset-cpus --cpuset-mems --device --device-cgroup-rule --dns
--dns-option --dns-search --domainname --entrypoint --env --env-file --expose --gpus --group-add
--health-cmd --health-interval --health-retries --health-start-period --health-timeout --hostname
--ip --ip6 --ipc --isolation --kernel-memory --label --label-file --link --log-driver --log-opt
--mac-address --memory --memory-reservation --memory-swap --memory-swappiness --mount --name --net
--network --network-alias --oom-score-adj --pid --pids-limit --platform --publish --pull --restart
--runtime --security-opt --shm-size --stop-signal --stop-timeout --storage-opt --sysctl --tmpfs
--ulimit --user --userns --uts --volume --volume-driver --volumes-from --workdir -a -c -e -h -l -m
-p -u -v -w""",
    )
)
"""Options of ``docker run`` that take a value. Source: Docker CLI reference, docker container run."""
_LONG = {"-e": "--env", "-v": "--volume", "-m": "--memory", "--net": "--network"}


@attrs.frozen
class DockerRun:
    """A container started by hand.

    Attributes:
        container: its image, environment, mounts; privileges stand where a pod's container has them.
        template: a pod of this one container; ``hostNetwork`` and ``hostIPC`` as for a pod.
        command: what runs in it; without a program where the image's entrypoint is it.
        gpus: the value of ``--gpus``, None where it is not given.
    """

    container: Container
    template: PodTemplate
    command: Command
    gpus: str | None


def read_docker_run(command: Command) -> DockerRun | None:
    """Return what a ``docker run`` command starts, or None where ``command`` is none or names no image."""
    words = command.words
    if len(words) < 2 or words[0].text.rsplit("/", 1)[-1] not in _PROGRAMS:
        return None
    at = 2 if words[1].text == "container" else 1
    if at >= len(words) or words[at].text != "run":
        return None
    options, rest = _options(words[at + 1 :])
    if not rest:
        return None
    return _made(options, rest[0], tuple(rest[1:]))


def _options(words: Sequence[Word]) -> tuple[list[tuple[str, str, Word]], Sequence[Word]]:
    """Return the options with value and place, and the words from the image on."""
    found: list[tuple[str, str, Word]] = []
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        name, joined, value = words[at].text.partition("=")
        place = words[at]
        if not joined and name in _WITH_VALUE and at + 1 < len(words):
            at += 1
            value, place = words[at].text, words[at]
        found.append((_LONG.get(name, name), value, place))
        at += 1
    return found, words[at:]


def _made(options: Sequence[tuple[str, str, Word]], image: Word, rest: tuple[Word, ...]) -> DockerRun:
    given = {name: value for name, value, _ in options}
    volumes, mounts = _mounts(options)
    entrypoint = given.get("--entrypoint")
    program = () if not entrypoint else (Word(entrypoint, image.path, image.offset, image.line),)
    container = Container(
        name=given.get("--name", ""),
        init=False,
        path="$",
        image=image.text,
        command=None if not entrypoint else (entrypoint,),
        args=tuple(word.text for word in rest),
        env=tuple(_environment(options)),
        env_from="--env-file" in given,
        mounts=mounts,
        requests={},
        limits=_gpus(given.get("--gpus")),
        spec=_security(options),
    )
    spec = {"hostNetwork": given.get("--network") == "host", "hostIPC": given.get("--ipc") == "host"}
    template = PodTemplate(
        kind="docker run",
        name=container.name,
        namespace=None,
        role="",
        path="$",
        spec=spec,
        owner_path="$",
        owner={},
        labels={},
        annotations={},
        containers=(container,),
        init_containers=(),
        volumes=volumes,
        node_selector={},
        host_network=spec["hostNetwork"],
        faults=(),
    )
    inner = Command((*program, *rest), {}, has_program=bool(entrypoint))
    return DockerRun(container, template, inner, given.get("--gpus"))


def _gpus(option: str | None) -> dict[str, Any]:
    """Return the GPUs that ``--gpus`` counts or lists, as a resource; of ``all`` the number is not told.

    Source: Docker CLI reference, docker container run, "Access an NVIDIA GPU".
    """
    fields = (option or "").strip("'\"")
    listed = fields.removeprefix("device=")
    if fields.isascii() and fields.isdigit():
        return {"nvidia.com/gpu": fields}
    if fields == listed or "$" in listed or "=" in listed:
        return {}
    return {"nvidia.com/gpu": str(len([one for one in listed.split(",") if one]))}


def _environment(options: Sequence[tuple[str, str, Word]]) -> Iterator[EnvVar]:
    for name, value, word in options:
        if name == "--env":
            key, joined, text = value.partition("=")
            told = bool(joined) and not word.unresolved
            yield EnvVar(key, text if told else None, None if told else "host", word.path)


def bind_mount(source: str, target: str) -> list[str]:
    """Return the words that mount a directory of the host read-only.

    ``--volume`` parts its value at colons; where the directory has one it is ``--mount``, whose value is a row of CSV.
    Source: Docker documentation, "docker container run".
    """
    if ":" not in source:
        return ["--volume", f"{source}:{target}:ro"]
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(("type=bind", f"source={source}", f"target={target}", "readonly"))
    return ["--mount", row.getvalue()]


def _mounts(options: Sequence[tuple[str, str, Word]]) -> tuple[tuple[Volume, ...], tuple[Mount, ...]]:
    volumes: list[Volume] = []
    mounts: list[Mount] = []

    def add(kind: str, source: dict[str, Any], target: str, read_only: bool, path: str) -> None:
        name = f"v{len(volumes)}"
        volumes.append(Volume(name, kind, source, path))
        mounts.append(Mount(name, target, read_only, None, path))

    for name, value, word in options:
        parts = value.split(":")
        if name == "--volume" and len(parts) >= 2:
            add("hostPath", {"path": parts[0]}, parts[1], "ro" in parts[2:], word.path)
        elif name == "--mount":
            fields = dict(part.partition("=")[::2] for row in csv.reader([value]) for part in row)
            target = fields.get("target") or fields.get("dst") or fields.get("destination") or ""
            source = fields.get("source") or fields.get("src") or ""
            add("hostPath", {"path": source}, target, "readonly" in fields or "ro" in fields, word.path)
        elif name == "--device":
            add("hostPath", {"path": parts[0]}, parts[1] if len(parts) > 1 else parts[0], False, word.path)
        elif name == "--shm-size":
            add("emptyDir", {"medium": "Memory", "sizeLimit": _quantity(value)}, "/dev/shm", False, word.path)
    return tuple(volumes), tuple(mounts)


def _quantity(size: str) -> str:
    """Return a size of Docker's, whose ``g`` is 2^30, as a quantity of Kubernetes'."""
    number, unit = size.rstrip("bBiI"), ""
    if number and number[-1] in "kKmMgG":
        number, unit = number[:-1], number[-1].upper() + "i"
    return number + unit


def _security(options: Sequence[tuple[str, str, Word]]) -> dict[str, Any]:
    context: dict[str, Any] = {}
    added = [value for name, value, _ in options if name == "--cap-add"]
    if any(name == "--privileged" and value != "false" for name, value, _ in options):
        context["privileged"] = True
    if added:
        context["capabilities"] = {"add": added}
    return {"securityContext": context} if context else {}
