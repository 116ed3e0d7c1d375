"""The same deployment without Kubernetes: for each node a ``docker run`` script and a bare ``vllm serve`` script."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from moeplan.manifests.docker_run import bind_mount
from moeplan.model.rendering import RenderedFile
from moeplan_vllm_cuda.data import read_data
from moeplan_vllm_cuda.rendering.asked import Asked
from moeplan_vllm_cuda.rendering.ground import Host
from moeplan_vllm_cuda.rendering.options import SPECULATION
from moeplan_vllm_cuda.rendering.ranks import network_environment, rank_arguments
from moeplan_vllm_cuda.rendering.words import MODELS, serve_words, shell_lines
from moeplan_vllm_cuda.rendering.workloads import engine_arguments, router_words

__all__ = ["script_name", "scripts"]


def scripts(asked: Asked) -> Iterator[RenderedFile]:
    """Yield a script of each form for each node, and for a pair those of its router."""
    for number, (role, host) in enumerate(asked.ground.every_host(), 1):
        for form, text in (("docker", _docker(asked, role, host)), ("serve", _bare(asked, role, host))):
            yield RenderedFile(script_name(form, number, host), "script", text)
    if asked.paired:
        addresses = {role: _address(hosts[0]) for role, hosts in asked.ground.hosts.items()}
        words = router_words(asked, addresses)
        started = [*_docker_head(f"{asked.name}-router"), str(asked.ground.router)]
        started[-1:-1] = ["--entrypoint", words[0]]
        yield RenderedFile("docker-router.sh", "script", _script("the router", {}, [*started, *words[1:]]))
        yield RenderedFile("serve-router.sh", "script", _script("the router", {}, words))


def script_name(form: str, number: int, host: Host) -> str:
    """Return the name of a node's script of a form, ``docker`` or ``serve``."""
    return f"{form}-{number}-{host.name[:60].rstrip('.-')}.sh"


def _address(host: Host) -> str:
    return host.address or host.name


def _words(asked: Asked, role: str, host: Host, models: str) -> list[str]:
    sizes, ground = asked.sizes, asked.ground
    ranks = rank_arguments(
        sizes,
        asked.balance,
        ground.ports,
        leader=host.index == 0,
        master=_address(ground.hosts[role][0]),
        rank=str(host.index),
        start=str(host.index * sizes.local_data),
    )
    arguments = engine_arguments(asked, role, ranks)
    if ground.draft is not None:
        arguments[SPECULATION] = dict(arguments[SPECULATION]) | {"model": f"{models}/{ground.draft}"}
    return serve_words(f"{models}/{ground.target}", arguments)


def _environment(asked: Asked, role: str, host: Host) -> dict[str, str]:
    own = network_environment(asked.ground, host.interface, _address(host), paired=asked.paired)
    return dict(asked.options[role].environment) | own


def _bare(asked: Asked, role: str, host: Host) -> str:
    words = _words(asked, role, host, host.model_directory.rstrip("/"))
    return _script(f"{role} on {host.name}", _environment(asked, role, host), words)


def _docker(asked: Asked, role: str, host: Host) -> str:
    data, ground, sizes = read_data("rendering/profiles.json")["pod"], asked.ground, asked.sizes
    shared = data["sharedMemory"].removesuffix("Gi") + "g"
    whole = sizes.gpus_per_node == asked.plan.target.accelerators_per_node
    started = _docker_head(asked.workload_name(role))
    started += ["--gpus", "all" if whole else str(sizes.gpus_per_node), "--ipc", "host", "--shm-size", shared]
    started += bind_mount(host.model_directory, MODELS)
    if ground.spans_nodes and ground.rdma:
        started += ["--ulimit", "memlock=-1", "--cap-add", "IPC_LOCK", "--device", "/dev/infiniband"]
    for name, value in _environment(asked, role, host).items():
        started += ["--env", f"{name}={value}"]
    words = _words(asked, role, host, MODELS)
    started += ["--entrypoint", words[0], ground.images[role], *words[1:]]
    return _script(f"{role} on {host.name}", {}, started)


def _docker_head(name: str) -> list[str]:
    return ["docker", "run", "--rm", "--name", name, "--network", "host"]


def _script(what: str, environment: Mapping[str, str], words: Sequence[str]) -> str:
    exports = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    return "\n".join(["#!/bin/sh", f"# {what}", "set -eu", *exports, f"exec {shell_lines(words)}", ""])
