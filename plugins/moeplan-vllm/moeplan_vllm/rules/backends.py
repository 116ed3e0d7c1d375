"""Which kernels a launch names, whatever words it uses for them: attention, the draft's attention, experts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moeplan.facts.launches import Derived, Subject
from moeplan.facts.values import Value, absent, known, unknown
from moeplan.manifests.versions import parse_version
from moeplan_vllm.environment import find_variable
from moeplan_vllm.rules.reading import known_text, look

__all__ = ["BACKENDS"]

_VARIABLE = "VLLM_ATTENTION_BACKEND"


def _first(subject: Subject, fields: tuple[str, ...], spell: Callable[[str], str]) -> Value:
    """Return what the first of ``fields`` that is given holds, spelled as vLLM spells it; absent where none is."""
    for field in fields:
        value = look(subject, field)
        if value.state != "absent" and not (value.is_known and value.value is None):
            return known(spell(str(value.value)), value.place) if value.is_known else value
    return absent(look(subject, fields[0]).place)


def _attention(subject: Subject) -> Value:
    """Return the attention backend; releases before 0.15 also read it from the environment.

    Source: vLLM 0.27.1 wheel, config/attention.py: names are taken in upper case, ``auto`` is none.
    """
    value = _first(subject, ("argument --attention-backend", "argument --attention-config backend"), str.upper)
    if value.value == "AUTO":
        return absent(value.place)
    given = look(subject, f"environment {_VARIABLE}")
    if value.state != "absent" or given.state == "absent":
        return value
    variable = find_variable(_VARIABLE)
    read = variable is not None and variable.versions.contains(parse_version(known_text(subject, "launch version")))
    if read is False:
        return value
    return known(str(given.value).upper(), given.place) if read and given.is_known else unknown(given.place)


def _draft(subject: Subject) -> Value:
    return _first(subject, ("argument --speculative-config attention_backend",), str.upper)


def _experts(subject: Subject) -> Value:
    """Return the backend of the experts.

    Source: vLLM 0.27.1 wheel, config/kernel.py: names are taken in lower case, ``-`` as ``_``.
    """
    fields = ("argument --moe-backend", "argument --kernel-config moe_backend")
    return _first(subject, fields, lambda name: name.lower().replace("-", "_"))


BACKENDS: Mapping[str, Derived] = {
    "attention-backend": _attention,
    "draft-attention-backend": _draft,
    "moe-backend": _experts,
}
"""Name → function of a launch."""
