"""What every line that bears a signature must hold: texts to look for first, and how specific they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import attrs

from moeplan.diagnosis.pattern_tree import Node, parse_pattern, walk
from moeplan.errors import Issue
from moeplan.model.plugin import LogSignature

__all__ = ["LEAST_SPECIFIC", "Anchor", "anchors", "signature_fault"]

LEAST_SPECIFIC = 8
"""Letters and digits a signature must hold beside names of exceptions and words that any failure uses."""

_MOST_ALTERNATIVES = 64
_MOST_BYTES = 48
_AS_IS_IN_JSON = re.compile(r"""[ !#-%'-.0-;=?-\[\]-~]+""")
"""Characters that no JSON writer escapes: found in a line as it is and in one that a container runtime wrapped."""
_REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}
_EXCEPTION = re.compile(r"\b(?:\w+\.)*\w*[a-z](?:Error|Exception|Warning|Interrupt|Exit)s?\b")
_EXCEPTION_ALONE = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt|Exit)")
_GENERIC = re.compile(
    r"\b(?:errors?|exceptions?|warnings?|info|debug|critical|fatal|traceback|most recent call last|"
    r"failed|failure|fail|line|file|raise|the|an?|in|of|to|is|not)\b",
    re.IGNORECASE,
)


@attrs.frozen
class Anchor:
    """A text to look for; ``folded`` where the case of ASCII letters does not matter, the text then in lower case."""

    text: str
    folded: bool = False


Alternatives = tuple[Anchor, ...]


def anchors(signature: LogSignature) -> Alternatives:
    """Return texts of which every line that bears the signature holds at least one; none where nothing is known.

    They stand in the line as they are, also where the line is a JSON object and the text escaped inside it.
    """
    found = [one for text in signature.literals for one in _runs(text, False)]
    if signature.pattern is not None:
        items, flags = parse_pattern(signature.pattern)
        found.append(_of_sequence(items, flags))
    return max(found, key=_least, default=())


def _least(alternatives: Alternatives) -> int:
    return min((len(one.text) for one in alternatives), default=0)


def _runs(text: str, folded: bool) -> list[Alternatives]:
    shown = text.lower() if folded else text
    return [(Anchor(run[:_MOST_BYTES], folded),) for run in _AS_IS_IN_JSON.findall(shown)]


def _of_sequence(items: Iterable[Any], flags: int) -> Alternatives:
    found: list[Alternatives] = []
    run, folded = "", False
    for node in walk(items, flags):
        if node.name == "AT":  # takes no text: what stands before and after it stands together
            continue
        if node.name == "LITERAL":
            if folded != bool(node.flags & re.IGNORECASE):
                found += _runs(run, folded)
                run, folded = "", not folded
            run += chr(node.value)
            continue
        found += _runs(run, folded)
        run = ""
        found.append(_of_node(node))
    return max([*found, *_runs(run, folded)], key=_least, default=())


def _of_node(node: Node) -> Alternatives:
    if node.name in _REPEATS and node.value[0] >= 1:
        return _of_sequence(node.value[2], node.flags)
    if node.name == "ATOMIC_GROUP":
        return _of_sequence(node.value, node.flags)
    if node.name == "BRANCH":
        branches = [_of_sequence(branch, node.flags) for branch in node.value[1]]
        joined = tuple(dict.fromkeys(one for branch in branches for one in branch))
        return joined if all(branches) and len(joined) <= _MOST_ALTERNATIVES else ()
    return ()


def signature_fault(signature: LogSignature) -> Issue | None:
    """Return what makes a signature too wide to mean anything, or None.

    Of a pattern's alternatives the least specific one counts. Names of exceptions and words that any failure uses
    (``error``, ``failed``, ``Traceback``) are not specific.
    """
    text = " \0 ".join(signature.literals)
    if signature.pattern is not None:
        text += " \0 " + _weakest(*parse_pattern(signature.pattern))
    if _specific(text) >= LEAST_SPECIFIC:
        return None
    named = [part.strip(" :.") for part in text.split("\0") if part.strip(" :.")]
    if named and all(_EXCEPTION_ALONE.fullmatch(part) for part in named):
        message = "this signature is the name of an exception alone, which any failure may raise"
    else:
        message = "this signature is too wide: lines that have nothing to do with it bear it too"
    wanted = f"at least {LEAST_SPECIFIC} letters and digits that only this failure writes"
    step = "add what the message says beside the exception, and check every alternative of the pattern"
    return Issue(f"signature {signature.id}", "generic_signature", message, wanted, str(_specific(text)), step)


def _specific(text: str) -> int:
    rest = _GENERIC.sub(" ", _EXCEPTION.sub(" ", text))
    return sum(one.isalnum() for one in rest)


def _weakest(items: Iterable[Any], flags: int) -> str:
    text = ""
    for node in walk(items, flags):
        if node.name == "LITERAL":
            text += chr(node.value)
        elif node.name in _REPEATS and node.value[0] >= 1:
            text += "\0" + _weakest(node.value[2], node.flags) + "\0"
        elif node.name == "ATOMIC_GROUP":
            text += _weakest(node.value, node.flags)
        elif node.name == "BRANCH":
            text += min((_weakest(branch, node.flags) for branch in node.value[1]), key=_specific)
        elif node.name != "AT":
            text += "\0"
    return text
