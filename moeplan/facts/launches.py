"""What manifests and scripts start: each launch of a known program with everything around it, in groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs

from moeplan.errors import InputError, Issue
from moeplan.facts.fields import Field
from moeplan.facts.values import Place, Value
from moeplan.manifests.argument_table import ArgumentTable
from moeplan.manifests.arguments import Arguments, read_arguments
from moeplan.manifests.commands import Command, Word, commands_of, commands_of_script, commands_within
from moeplan.manifests.containers import Container
from moeplan.manifests.pod_templates import PodTemplate, find_pod_templates
from moeplan.manifests.yaml_positions import Document, load_manifests
from moeplan.model.rendering import ManifestSource

if TYPE_CHECKING:
    from moeplan.manifests.docker_run import DockerRun

__all__ = ["Derived", "Knowledge", "Program", "Scene", "Subject", "is_directory", "read_scene"]


@attrs.frozen
class Program:
    """A program that a plugin knows.

    Attributes:
        name: its name for facts and messages: ``vllm``, ``infera.server``.
        kind: ``engine``, ``router`` or ``sidecar``.
        words: the words that start it, such as ``("vllm", "serve")``; any of them.
        table: its arguments.
        entrypoints: image repositories whose entrypoint it is; ``args`` alone then start it.
        entry_words: words that may lead such ``args`` (``serve``).
        bare: whether a script that begins with an option is taken for its arguments.
    """

    name: str
    kind: str
    words: tuple[tuple[str, ...], ...]
    table: ArgumentTable = attrs.field(repr=False)
    entrypoints: tuple[str, ...] = ()
    entry_words: tuple[str, ...] = ()
    bare: bool = False


Derived = Callable[["Subject"], Value]
_NAME_LABEL = "app.kubernetes.io/name"
"""Source: Kubernetes documentation, "Recommended Labels"."""


def is_directory(reference: str) -> bool:
    """Return whether a model's reference is a path and no hub id: its name is then whatever the directory is called."""
    return reference.startswith(("/", "./", "../", "~"))


@attrs.frozen(kw_only=True)
class Knowledge:
    """What a plugin brings to the reading of manifests.

    Attributes:
        programs: the programs it knows; the first whose words stand in a command is it.
        versioned: image repositories whose tags are engine versions.
        role: a launch's role where the manifest's kind does not tell it; empty text where there is none.
        profile: which of the plugin's profiles a scene is, None where that is not known.
        model: architecture values of a model by reference, None where the model is not known.
        recognises: whether a reference names a model that is known at all, be it without its architecture.
        served: the model that the engines serve where more than the manifests tells, such as the plan.
        derived: values of ``derived NAME`` fields beside the core's.
    """

    programs: tuple[Program, ...]
    versioned: tuple[str, ...] = ()
    role: Callable[[Subject], str] = attrs.field(default=lambda _subject: "")
    profile: Callable[[Scene], str | None] = attrs.field(default=lambda _scene: None)
    model: Callable[[str], Mapping[str, Any] | None] = attrs.field(default=lambda _reference: None)
    derived: Mapping[str, Derived] = attrs.field(factory=dict)
    recognises: Callable[[str], bool] = attrs.field(default=lambda _reference: False)
    served: str | None = None


@attrs.define(eq=False, slots=False)
class Subject:
    """What facts are held against: a launch, or a pod, a document or a group, whose launch parts are None.

    ``group`` is the name of its group; ``faults`` are what reading it found.
    """

    scene: Scene = attrs.field(repr=False)
    group: str
    source: ManifestSource = attrs.field(repr=False)
    document: Document | None = attrs.field(default=None, repr=False)
    template: PodTemplate | None = attrs.field(default=None, repr=False)
    container: Container | None = attrs.field(default=None, repr=False)
    command: Command | None = None
    program: Program | None = None
    arguments: Arguments = attrs.field(factory=lambda: Arguments((), ()))

    @cached_property
    def role(self) -> str:
        """Return the launch's role: the manifest's word for it, or else what the plugin makes of it."""
        owner = self.template.owner if self.template is not None else {}
        declared = owner.get("role")
        if isinstance(declared, str) and declared:
            return declared
        if owner.get("componentType") == "server":
            return "server"
        own = self.scene.knowledge.role(self)
        return own or (self.template.role if self.template is not None else "")

    @cached_property
    def model_reference(self) -> str | None:
        """Return which model the launch serves, as written; None where none is given or it is not known."""
        given = self.arguments.last("--model") or self.arguments.last("--model-path")
        if given is not None:
            return given.value if isinstance(given.value, str) and not given.unresolved else None
        words = self.arguments.positional
        return words[0].text if words and not words[0].unresolved else None

    @cached_property
    def model_name(self) -> str | None:
        """Return what names the model: the reference, or what stands beside a directory whose name tells nothing.

        That is the label ``app.kubernetes.io/name``, or the name that clients give in requests, where it names a model
        that is known. A placeholder that names a model (``<DeepSeek-R1>``) counts as its name.
        """
        knows = self.scene.knowledge
        reference = self.model_reference
        if reference is None:
            return None
        written = reference.strip("<>")
        if knows.served is not None:
            return knows.served
        if knows.recognises(written) or not is_directory(reference):
            return written
        return next((name for name in self._names_beside() if knows.recognises(name)), written)

    def _names_beside(self) -> Iterator[str]:
        labels = {} if self.template is None else self.template.labels
        served = self.arguments.last("--served-model-name")
        names = () if served is None or served.unresolved else served.value
        for name in (labels.get(_NAME_LABEL), *((names,) if isinstance(names, str) else names)):
            if isinstance(name, str) and name:
                yield name

    @cached_property
    def model(self) -> Mapping[str, Any] | None:
        """Return the architecture values of that model, None where it is not known."""
        return None if self.model_name is None else self.scene.knowledge.model(self.model_name)

    @cached_property
    def open_ended(self) -> bool:
        """Return whether words that only running tells may bring further arguments."""
        return any(word.unresolved and word.text.startswith("$") for word in self.arguments.positional)

    def look(self, field: Field) -> Value:
        """Return a field's value with its place."""
        from moeplan.facts.look import look

        return look(self, field)

    def engines(self) -> tuple[Subject, ...]:
        """Return the engines of its group."""
        return tuple(one for one in self.scene.launches if one.group == self.group and one.kind == "engine")

    @property
    def kind(self) -> str | None:
        """Return the kind of its program."""
        return None if self.program is None else self.program.kind

    def place(self, path: str | None = None, word: Word | None = None) -> Place:
        """Return where a JSON path, or a word of a command, stands; without either, where the subject begins."""
        from moeplan.facts.places import place_in_manifest, place_in_script

        if self.document is None:
            return place_in_script(self.source, word if word is not None else _first(self.command))
        if word is None and path is None and self.command is not None:
            word = _first(self.command)
        return place_in_manifest(self.source, self.document, path or self._path, word)

    @property
    def _path(self) -> str:
        if self.container is not None:
            return self.container.path
        return "$" if self.template is None else self.template.path


def _first(command: Command | None) -> Word | None:
    return command.words[0] if command is not None and command.words else None


@attrs.define(eq=False, slots=False)
class Scene:
    """All that was given to be judged together.

    Attributes:
        knowledge: the plugin's.
        site: the site as JSON values, empty where there is none.
        launches: launches of known programs in the order they stand.
        pods: pod templates, as subjects without a program.
        documents: documents, likewise.
        scripts: sources that are launch scripts.
        faults: scripts that could not be read, each with its source's name.
        named_profile: the profile that the user names.
    """

    knowledge: Knowledge
    site: Mapping[str, Any] = attrs.field(factory=dict)
    named_profile: str | None = None
    launches: list[Subject] = attrs.field(factory=list)
    pods: list[Subject] = attrs.field(factory=list)
    documents: list[Subject] = attrs.field(factory=list)
    scripts: list[ManifestSource] = attrs.field(factory=list)
    faults: list[tuple[str, Issue]] = attrs.field(factory=list)

    @cached_property
    def profile(self) -> str | None:
        """Return the profile: the one named, or else the one the plugin recognises."""
        return self.named_profile or self.knowledge.profile(self)

    def groups(self) -> list[Subject]:
        """Return one subject for each group of launches: its last launch's document without the launch."""
        last = {launch.group: launch for launch in self.launches}
        return [Subject(self, one.group, one.source, one.document) for one in last.values()]

    def engines(self, group: str | None = None) -> tuple[Subject, ...]:
        """Return the engines, of one group or all."""
        return tuple(one for one in self.launches if one.kind == "engine" and group in (None, one.group))


def read_scene(
    sources: Sequence[ManifestSource],
    knowledge: Knowledge,
    site: Mapping[str, Any] | None = None,
    profile: str | None = None,
) -> Scene:
    """Return what ``sources`` start.

    An InferaDeployment is a group of its own; all else that is given together is one group.

    Raises:
        InputError: a source with documents is no YAML; the core has read it before, so that does not happen there.
    """
    scene = Scene(knowledge, site or {}, profile)
    for source in sources:
        if source.documents is None:
            scene.scripts.append(source)
            _read_script(scene, source)
            continue
        listed = load_manifests(source.text.encode("utf-8"), source=source.name).documents
        for number in source.documents:
            if number < len(listed):
                _read_document(scene, source, listed[number])
    return scene


def _read_script(scene: Scene, source: ManifestSource) -> None:
    from moeplan.manifests.docker_run import read_docker_run

    try:
        commands = commands_of_script(source.text)
    except InputError as error:
        scene.faults.extend((source.name, issue) for issue in error.issues)
        return
    for command in commands:
        run = read_docker_run(command)
        if run is None:
            scene.launches.extend(_launch(scene, "", source, None, None, None, command))
            continue
        scene.launches.extend(_within_docker(scene, source, run))


def _within_docker(scene: Scene, source: ManifestSource, run: DockerRun) -> list[Subject]:
    """Return what a container started by hand launches, or the script it gives a shell.

    A shell given to an image whose entrypoint is a program is no script but arguments of that program.
    """
    started = list(_launch(scene, "", source, None, run.template, run.container, run.command))
    if not started:
        try:
            for one in commands_within(run.command):
                started.extend(_launch(scene, "", source, None, run.template, run.container, one))
        except InputError as error:
            scene.faults.extend((source.name, issue) for issue in error.issues)
    return started


def _read_document(scene: Scene, source: ManifestSource, document: Document) -> None:
    value = document.value if isinstance(document.value, dict) else {}
    group = ""
    if value.get("kind") == "InferaDeployment":
        group = f"{source.name}#{document.number}{document.root}"
    scene.documents.append(Subject(scene, group, source, document))
    for template in find_pod_templates(document.value):
        scene.pods.append(Subject(scene, group, source, document, template))
        for container in (*template.containers, *_sidecars(template)):
            try:
                commands = commands_of(container)
            except InputError as error:
                scene.faults.extend((source.name, issue) for issue in error.issues)
                continue
            for command in commands:
                scene.launches.extend(_launch(scene, group, source, document, template, container, command))


def _sidecars(template: PodTemplate) -> Iterator[Container]:
    """Yield the init containers that run beside the others.

    Source: Kubernetes documentation, "Sidecar Containers": init containers with restartPolicy Always.
    """
    return (one for one in template.init_containers if one.spec.get("restartPolicy") == "Always")


def _launch(
    scene: Scene,
    group: str,
    source: ManifestSource,
    document: Document | None,
    template: PodTemplate | None,
    container: Container | None,
    command: Command,
) -> Iterator[Subject]:
    found = _program_of(command, container, scene.knowledge.programs)
    if found is not None:
        program, words = found
        arguments = read_arguments(words, program.table)
        yield Subject(scene, group, source, document, template, container, command, program, arguments)


def _program_of(
    command: Command, container: Container | None, programs: Iterable[Program]
) -> tuple[Program, Sequence[Word]] | None:
    known = tuple(programs)
    for program in known:
        for words in program.words:
            after = command.after(*words)
            if after is not None:
                return program, after
    for program in known:
        entered = _entry(command, container, program)
        if entered is not None:
            return program, entered
    return None


def _entry(command: Command, container: Container | None, program: Program) -> Sequence[Word] | None:
    """Return the words after an image's own entrypoint, or a script's bare options, where that is the program."""
    if program.bare and container is None and command.words and command.words[0].text.startswith("--"):
        return command.words
    if command.has_program or container is None or container.image is None:
        return None
    repository = container.image.split("@", 1)[0].rsplit(":", 1)[0]
    if not any(repository == name or repository.endswith("/" + name) for name in program.entrypoints):
        return None
    words = list(command.words)
    if words and words[0].text in program.entry_words:
        words = words[1:]
    return words
