"""The operator's README: what stands here, what is needed, what to do in which order, and what proves that it works."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from moeplan.errors import escape
from moeplan.model.manifest_set import SET_NAME, ManifestSetFile
from moeplan.model.plan import Plan
from moeplan.model.plugin import Profile
from moeplan.model.rendering import GuideStep
from moeplan.model.site import Site, SiteNode
from moeplan.version import GENERATOR

__all__ = ["Origin", "write_guide"]

_PARTS = (
    ("prerequisite", "Before anything is applied", "None of this is done by the files in this directory."),
    ("deploy", "Deploy, in this order", "A step that is not done within its time has failed: look at it, do not wait."),
    ("smoke", "The first request", "It shows that something answers, and no more."),
    (
        "proof",
        "What proves that it works",
        "A right answer alone does not: features that fail may fall back in silence.",
    ),
)
_STATUS = {
    "measured": "measured: somebody ran it and wrote down what happened",
    "recipe_only": "recipe only: described, with no measurement that is known",
    "calculated": "calculated: it should fit; nobody is known to have run it",
    "reported_failing": "reported failing: it is known not to work, and was accepted nevertheless",
}


@attrs.frozen
class Origin:
    """What a rendering came from: identities of plan and site, ``name@version`` of the plugin, the profile, images."""

    plan: str
    site: str
    plugin: str
    profile: Profile
    images: tuple[str, ...]


def write_guide(
    plan: Plan,
    site: Site,
    origin: Origin,
    files: Sequence[ManifestSetFile],
    guide: Sequence[GuideStep],
    removed: Sequence[str] = (),
) -> str:
    """Return the README as Markdown.

    Args:
        plan: what is deployed.
        site: where.
        origin: what this comes from.
        files: the rendered files in the order in which they are applied.
        guide: the plugin's steps.
        removed: the files whose objects go when the deployment is taken away, in the order in which they are applied.
    """
    parts = (
        _head(plan, origin),
        _ground(plan, site, origin.images),
        _steps(guide),
        _trouble(site),
        _removal(removed),
        _criteria(plan),
        _listing(files),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(plan: Plan, made: Origin) -> Iterator[str]:
    profile = made.profile
    yield f"# {_plain(plan.artifact.model_name)} on {_plain(plan.target.hardware_name)}: {profile.id}"
    yield ""
    yield f"{_sentence(profile.title)} Rendered by plugin `{made.plugin}` with {GENERATOR}."
    yield ""
    yield f"- Checkpoint: `{_plain(plan.artifact.repository)}` at `{_plain(plan.artifact.revision)}`"
    yield f"- Plan: `{made.plan}`"
    yield f"- Site: `{made.site}`"
    yield f"- Profile's status: {_STATUS[profile.status]}. {_plain(profile.statement)}"
    for source in profile.sources:
        yield f"  - source: {_plain(source.source)}" + (f", {_plain(source.locator)}" if source.locator else "")
    yield f"- Plan's status: `{plan.readiness.status}`. {_plain(plan.readiness.reason)}"
    yield ""
    yield f"Do not edit these files: `{SET_NAME}` lists them by digest, and evidence names its digest. Change the site"
    yield "file and render again; `moeplan render … --diff` shows what would change."
    yield "Run the commands in this directory, except those that a step wants on a node."
    yield ""


def _ground(plan: Plan, site: Site, images: Sequence[str]) -> Iterator[str]:
    yield "## Where it runs"
    yield ""
    where = "" if site.namespace is None else f"Namespace `{site.namespace}`. "
    asked, each = plan.target.requested_accelerators, plan.target.accelerators_per_node
    yield f"{where}The plan asks for {asked} accelerators, {each} a node."
    yield ""
    nodes = site.nodes if isinstance(site.nodes, tuple) else ()
    if nodes:
        yield "| node | roles | model directory | free accelerators, as the site has it |"
        yield "|---|---|---|---|"
        yield from (_node(node) for node in nodes)
        yield ""
    yield "Images, each by digest:"
    yield ""
    yield from (f"- `{image}`" for image in images)
    yield ""


def _node(node: SiteNode) -> str:
    free = "not known" if node.free_accelerators is None else str(node.free_accelerators)
    present = "" if node.accelerators is None else f" of {node.accelerators}"
    roles = ", ".join(node.roles) if node.roles else "any"
    directory = f"`{_plain(node.model_directory)}`" if node.model_directory else "none"
    return f"| `{node.name}` | {roles} | {directory} | {free}{present} |"


def _steps(guide: Sequence[GuideStep]) -> Iterator[str]:
    for part, title, lead in _PARTS:
        steps = [step for step in guide if step.part == part]
        if not steps:
            continue
        yield f"## {title}"
        yield ""
        yield lead
        yield ""
        for number, step in enumerate(steps, 1):
            yield from _step(number, step)


def _step(number: int, step: GuideStep) -> Iterator[str]:
    yield f"### {number}. {_plain(step.title)}"
    yield ""
    yield from (_plain(line) for line in step.statement.split("\n"))
    yield ""
    if step.commands:
        fence = _fence(step.commands)
        yield f"{fence}sh"
        yield from (_plain(line) for command in step.commands for line in command.split("\n"))
        yield fence
        yield ""
    if step.deadline_seconds is not None:
        yield f"Deadline: {_duration(step.deadline_seconds)}."
        yield ""


def _trouble(site: Site) -> Iterator[str]:
    yield "## When a step fails"
    yield ""
    if site.namespace is None:
        yield "`moeplan diagnose LOG` says what is known of the lines of an engine's log."
        yield ""
        return
    here = f"kubectl -n {site.namespace}"
    yield "Pods and events say what Kubernetes waits for, `moeplan diagnose` what is known of the lines of a log. Of a"
    yield "container that was restarted, the log that counts is that of `kubectl logs --previous`."
    yield ""
    yield "```sh"
    yield f"{here} get pods -o wide"
    yield f"{here} get events --sort-by=.lastTimestamp | tail -n 20"
    logs = f'{here} logs "$pod" --all-containers --tail=-1 | moeplan diagnose -'
    yield f'for pod in $({here} get pods -o name); do echo "$pod"; {logs}; done'
    yield "```"
    yield ""


def _removal(removed: Sequence[str]) -> Iterator[str]:
    if not removed:
        return
    yield "## To take it away"
    yield ""
    yield "What these files made; the namespace stays, for other things may lie in it."
    yield ""
    yield "```sh"
    yield "kubectl delete --ignore-not-found " + " ".join(f"-f {name}" for name in reversed(removed))
    yield "```"
    yield ""


def _criteria(plan: Plan) -> Iterator[str]:
    yield "## What the plan requires before it is called ready"
    yield ""
    for gate in plan.validation_gates:
        yield f"{gate.order}. {_plain(gate.title)}"
        yield from (f"   - {_plain(sentence)}" for sentence in gate.acceptance_criteria)
    yield ""
    yield "Measurements count when they are imported (`moeplan import`), bound to this deployment and judged"
    yield "(`moeplan verdict`). What a dashboard shows is no evidence."
    yield ""


def _listing(files: Iterable[ManifestSetFile]) -> Iterator[str]:
    yield "## The files, in the order in which they are applied"
    yield ""
    yield "| file | form |"
    yield "|---|---|"
    yield from (f"| `{file.name}` | {file.form} |" for file in files)
    yield ""
    if any(file.form == "kustomization" for file in files):
        yield "`kubectl apply -k .` applies all manifests but the Jobs at once, without the order and the checks above."
    yield f"`{SET_NAME}` holds each file's digest and size."


def _fence(commands: Sequence[str]) -> str:
    fence = "```"
    while any(fence in command for command in commands):
        fence += "`"
    return fence


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    if not minutes:
        return f"{seconds} s"
    return f"{minutes} min" + (f" {rest} s" if rest else "") + f" ({seconds} s)"


def _sentence(text: str) -> str:
    shown = _plain(text)
    shown = shown[:1].upper() + shown[1:]
    return shown if shown.endswith(".") else shown + "."


def _plain(text: str) -> str:
    return escape(text, 10 * len(text))
