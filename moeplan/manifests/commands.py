"""What a container runs: ``command`` and ``args``, or the commands of the shell script they hold, as located words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from moeplan.manifests.containers import Container
from moeplan.manifests.environment import Expanded, expand, resolve_environment
from moeplan.manifests.shell_words import ShellWord, split_script

__all__ = ["Command", "Word", "commands_of", "commands_of_script", "commands_within"]

_SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh"))
_SHELL_C = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_REFERENCE = re.compile(r"\s*\$\([^()]*\)\s*")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NESTED = 4
"""Deepest nesting of ``sh -c`` in ``sh -c``."""


@attrs.frozen
class Word:
    """A word of a command line and where it comes from.

    Attributes:
        text: the word, references replaced as far as known.
        path: JSON path of the list item or script that holds it; ``$`` for a launch script.
        offset: where in that script it begins, in characters; None where the list item is the word.
        line: how many line ends of the script stand before it.
        used: environment or script variables whose values went into it.
        unresolved: variables and substitutions in it whose values are not known; they stand in the text as written.
    """

    text: str
    path: str
    offset: int | None = None
    line: int = 0
    used: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()


@attrs.frozen
class Command:
    """A command.

    Attributes:
        words: its words, program first; without the ``exec``, ``env`` or ``nohup`` before it.
        environment: what the command line itself sets or exports for it, beyond the container's environment; None:
            set, and not known to what.
        has_program: False where ``args`` stand without ``command``: then the image's entrypoint is the program.
    """

    words: tuple[Word, ...]
    environment: Mapping[str, str | None]
    has_program: bool = True

    def after(self, *program: str) -> tuple[Word, ...] | None:
        """Return the words after the first place where ``program`` stands, such as ``("vllm", "serve")``, or None.

        The first of them is compared without its directory.
        """
        texts = [word.text for word in self.words]
        for start, text in enumerate(texts):
            if text.rsplit("/", 1)[-1] == program[0] and tuple(texts[start + 1 : start + len(program)]) == program[1:]:
                return self.words[start + len(program) :]
        return None


def commands_of(container: Container) -> tuple[Command, ...]:
    """Return what a container runs; nothing where neither ``command`` nor ``args`` is given.

    Raises:
        InputError: a script with an open quote, or references that grow without bound.
    """
    environment = resolve_environment(container.env)
    variables = {name: None if value is None or value.unresolved else value.text for name, value in environment.items()}
    given = [
        (f"{container.path}.{key}[{index}]", text)
        for key, listed in (("command", container.command), ("args", container.args))
        for index, text in enumerate(listed or ())
    ]
    words = [_word(expand(text, environment, path), path) for path, text in given]
    if not words:
        return ()
    if not container.command:
        return (Command(tuple(words), {}, has_program=False),)
    script = _script_of(words)
    if script is not None and not _REFERENCE.fullmatch(given[script][1]):
        # References within a script are put in word by word, so that each word tells where it comes from.
        words[script] = Word(given[script][1], given[script][0])
    return _commands(words, {}, _Scope(variables, variables), 0)


@attrs.frozen
class _Scope:
    """What is known where a command stands: the variables, and what Kubernetes put in for references."""

    variables: Mapping[str, str | None]
    references: Mapping[str, str | None]


def commands_of_script(
    text: str, variables: Mapping[str, str | None] | None = None, path: str = "$"
) -> tuple[Command, ...]:
    """Return the commands of a launch script, or of one command line.

    Args:
        text: the script.
        variables: environment variables it can rely on; None where set and not known.
        path: what holds the script.

    Raises:
        InputError: an open quote, or variables that grow without bound.
    """
    return _script(Word(text, path), None, {}, _Scope(dict(variables or {}), {}), 0)


def commands_within(command: Command) -> tuple[Command, ...]:
    """Return the commands of the script that a command gives a shell with ``-c``, or the command alone.

    Raises:
        InputError: as for :func:`commands_of_script`.
    """
    return _commands(command.words, command.environment, _Scope(command.environment, {}), 0)


def _word(expanded: Expanded, path: str) -> Word:
    return Word(expanded.text, path, None, 0, expanded.used, expanded.unresolved)


def _commands(
    words: Sequence[Word], given: Mapping[str, str | None], scope: _Scope, nested: int
) -> tuple[Command, ...]:
    rest, own = _stripped(list(words))
    environment = {**given, **own}
    script = _script_of(rest)
    if script is None or nested >= _NESTED:
        return (Command(tuple(rest), environment),) if rest else ()
    inner = attrs.evolve(scope, variables={**scope.variables, **environment})
    return _script(rest[script], rest[script + 2 :], environment, inner, nested + 1)


def _script(
    script: Word,
    rest: Sequence[Word] | None,
    given: Mapping[str, str | None],
    scope: _Scope,
    nested: int,
) -> tuple[Command, ...]:
    """Return a script's commands; ``rest`` are its arguments, None where whoever starts it gives them."""
    found: list[Command] = []
    positional = None if rest is None else [word.text for word in rest]
    for command in split_script(script.text, scope.variables, positional, scope.references, script.path):
        words = [_located(word, script) for word in command.words]
        found.extend(_commands(words, {**given, **command.environment}, scope, nested))
    return tuple(found)


def _located(word: ShellWord, script: Word) -> Word:
    if script.offset is not None:  # a script within a script lies where its word lies in the outer one
        return Word(word.text, script.path, script.offset, script.line, word.used, word.unresolved)
    return Word(word.text, script.path, word.offset, word.line, word.used, word.unresolved)


def _script_of(words: Sequence[Word]) -> int | None:
    """Return which word of a shell's command line is its script, or None where it runs none given with ``-c``."""
    if not words or words[0].text.rsplit("/", 1)[-1] not in _SHELLS:
        return None
    at = 1
    while at < len(words) and words[at].text.startswith(("-", "+")):
        if _SHELL_C.fullmatch(words[at].text):
            while at + 1 < len(words) and words[at + 1].text.startswith("-"):
                at += 2 if words[at + 1].text == "-o" else 1
            return at + 1 if at + 1 < len(words) else None
        at += 2 if words[at].text in ("-o", "+o") else 1
    return None


def _stripped(words: list[Word]) -> tuple[list[Word], dict[str, str | None]]:
    """Return the words without what only leads in the program, and the variables that ``env`` sets."""
    own: dict[str, str | None] = {}
    at = 0
    while at < len(words) and _program(words[at]) in ("exec", "env", "nohup", "command"):
        is_env = _program(words[at]) == "env"
        at += 1
        while is_env and at < len(words) and _SETTING.match(words[at].text):
            name, value = words[at].text.split("=", 1)
            own[name] = None if words[at].unresolved else value
            at += 1
    return words[at:], own


def _program(word: Word) -> str:
    return word.text.rsplit("/", 1)[-1]
