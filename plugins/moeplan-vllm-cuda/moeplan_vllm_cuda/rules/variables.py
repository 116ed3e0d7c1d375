"""Names that vLLM has to know: its environment variables, the parsers of a model, a switch of one."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan_vllm.arguments import was_read
from moeplan_vllm.environment import Variable, find_variable, near_variables
from moeplan_vllm.families import family_of
from moeplan_vllm.rules.reading import known_text, look, place_of

from moeplan.facts.judge import Hit
from moeplan.facts.launches import Scene, Subject
from moeplan.manifests.versions import parse_version
from moeplan_vllm_cuda.recipes import find_recipe, parsers_of_others

__all__ = ["autotune", "parsers", "unknown_variables"]

_JUDGED_BY_OTHERS = frozenset(
    ("VLLM_USE_FLASHINFER_MOE_FP4", "VLLM_USE_FLASHINFER_MOE_FP8", "VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8")
)
"""Variables that facts of their own judge: C-MOE-011 and C-OSS-003."""
_OTHER_TOOL_PARSERS = frozenset(
    ("granite", "internlm", "jamba", "llama3_json", "llama4_json", "llama4_pythonic", "mistral", "phi4_mini_json")
)
"""Parsers of models that no recipe here is for. Source: vLLM documentation, "Tool Calling"."""


def unknown_variables(scene: Scene) -> Iterator[Hit]:
    """C-ENV-001: each VLLM_ variable is one that the release reads; in other people's images that is not sure."""
    for one in scene.engines():
        for name in _names(one):
            told = _fault(one, name, find_variable(name))
            if told is not None:
                severity = "info" if _is_custom(one) or name in _JUDGED_BY_OTHERS else None
                yield Hit(place_of(one, f"environment {name}"), told, one, severity)


def _names(subject: Subject) -> list[str]:
    names = [] if subject.container is None else [variable.name for variable in subject.container.env]
    names += [] if subject.command is None else list(subject.command.environment)
    return [name for name in dict.fromkeys(names) if name.startswith("VLLM_") and not _is_service(name)]


def _is_service(name: str) -> bool:
    """Return whether Kubernetes or Docker makes such a name for a service called ``vllm``."""
    return "_PORT_" in name or name.endswith(("_SERVICE_HOST", "_SERVICE_PORT")) or "_SERVICE_PORT_" in name


def _fault(subject: Subject, name: str, variable: Variable | None) -> str | None:
    if variable is None:
        near = near_variables(name)
        return f"no release of vLLM reads {name}" + (f"; near it: {', '.join(near)}" if near else "")
    version = parse_version(known_text(subject, "launch version"))
    if variable.build is not None:
        return f"{name} is read by {variable.build} alone"
    if not was_read(version) or variable.versions.contains(version) is not False:
        return None
    instead = f"; it became {variable.instead}" if variable.instead else ""
    return f"vLLM {version} does not read {name} ({variable.versions.text}){instead}"


def _is_custom(subject: Subject) -> bool:
    repository = known_text(subject, "image repository")
    return repository is not None and not repository.endswith("vllm-openai")


def parsers(scene: Scene) -> Iterator[Hit]:
    """C-ENV-007: the parsers are those of the model's recipe, and not another model's."""
    for one in scene.engines():
        recipe = None if one.model_name is None else find_recipe(one.model_name)
        if recipe is None:
            continue
        for kind, field, own in (
            ("tool", "argument --tool-call-parser", recipe.tool_parser),
            ("reasoning", "argument --reasoning-parser", recipe.reasoning_parser),
        ):
            given = known_text(one, field)
            others = parsers_of_others(kind) | (_OTHER_TOOL_PARSERS if kind == "tool" else frozenset())
            if given is None or own is None or given == own or given not in others:
                continue
            yield Hit(place_of(one, field), f"{given} is another model's parser; the recipe's is {own}", one)


def autotune(scene: Scene) -> Iterator[Hit]:
    """C-DS-001: DeepSeek-V3.2 runs without FlashInfer's autotuning; left out, what happens depends on the release."""
    fields = ("argument --kernel-config enable_flashinfer_autotune", "argument --enable-flashinfer-autotune")
    for one in scene.engines():
        if one.model_name is None or family_of(one.model_name) != "deepseek-v3.2":
            continue
        given = [look(one, field) for field in fields]
        told = [value for value in given if value.is_known and value.value is not None]
        if any(value.state == "unknown" for value in given) or any(str(one.value).lower() == "false" for one in told):
            continue
        message = "FlashInfer's autotuning is " + ("on" if told else "not turned off")
        place = told[0].place if told else None
        yield Hit(place or place_of(one, "launch model"), message, one, None if told else "info")
