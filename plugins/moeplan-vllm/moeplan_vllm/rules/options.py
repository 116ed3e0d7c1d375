"""Rules about the options themselves: names that the release has, values that its parser can read."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from moeplan.facts.fields import parse_field
from moeplan.facts.judge import Hit
from moeplan.facts.launches import Scene, Subject
from moeplan.manifests.arguments import Argument
from moeplan.manifests.versions import parse_version
from moeplan_vllm.arguments import argument_table, was_read
from moeplan_vllm.programs import API_SERVER, SERVE

__all__ = ["names", "values"]

_VERSION = parse_field("launch version")


def names(scene: Scene) -> Iterator[Hit]:
    """V-ARG-001: an error where the release's options were read; a remark where the release is not known."""
    for launch in _of_vllm(scene):
        told = launch.look(_VERSION)
        version = parse_version(str(told.value)) if told.is_known else None
        for argument in launch.arguments.given:
            if argument.problem is None and not argument.words[0].unresolved:
                message = _name_fault(argument, version)
                if message is not None:
                    severity = None if was_read(version) else "info"
                    yield Hit(launch.place(word=argument.words[0]), message, launch, severity)


def _of_vllm(scene: Scene) -> Iterator[Subject]:
    for launch in scene.engines():
        if launch.program is not None and launch.program.name in (SERVE, API_SERVER):
            yield launch


def _name_fault(argument: Argument, version: Version | None) -> str | None:
    release = "" if version is None else f" {version}"
    if not argument.known:
        if not argument.written.startswith("--"):
            return None  # a shell's words after an image's entrypoint, which another fact tells
        near = f"; like it: {', '.join(argument.near)}" if argument.near else ""
        return f"{argument.written} is no option of vLLM{release} that is known{near}"
    spec = argument_table().find(argument.name)
    if spec is None or not was_read(version) or spec.exists_in(version) is not False:
        return None
    return f"{argument.written} is no option of vLLM{release}; releases {spec.versions.text} have it"


def values(scene: Scene) -> Iterator[Hit]:
    """V-ARG-002: JSON that is none, a value that is missing, a flag with a value."""
    for launch in _of_vllm(scene):
        for argument in launch.arguments.given:
            if argument.problem is not None:
                yield Hit(launch.place(word=argument.words[-1]), argument.problem.message, launch)
