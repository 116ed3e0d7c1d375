"""What plugins' log signatures call an error in a log, as the importer takes it."""

from __future__ import annotations

from typing import Any

import pytest

from moeplan.errors import PluginError
from moeplan.model.plugin import FactSource, LogSignature, PluginFailure
from moeplan.workflows import fatal_lines as module
from moeplan.workflows.diagnose import KnownSignatures
from moeplan.workflows.fatal_lines import fatal_lines


def signature(id: str, severity: str, text: str) -> LogSignature:
    return LogSignature(
        id=id,
        severity=severity,
        literals=(text,),
        expectation="informs",
        cause="it broke",
        remedy="mend it",
        sources=(FactSource("a recipe"),),
    )


def known(*failures: PluginFailure) -> KnownSignatures:
    signatures = (signature("X-001", "error", "kernel broke"), signature("X-002", "warning", "kernel slow"))
    return KnownSignatures({"vllm-x": signatures}, {"vllm-x": "1.0"}, failures)


def test_errors_alone_are_fatal_and_say_where_and_how_often(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ask(*words: Any) -> KnownSignatures:
        asked.append(words)
        return known()

    monkeypatch.setattr(module, "known_signatures", ask)
    log = b"fine\nkernel slow\nthe kernel broke\nkernel broke again\n"
    assert fatal_lines(log, None, "vllm-x") == {"vllm-x.x-001": (3, 2)}
    assert asked == [(None, "vllm-x")]
    assert fatal_lines(b"fine\n", None, "vllm-x") == {}


def test_a_plugin_that_failed_leaves_its_findings_unknown_so_that_the_import_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failure = PluginFailure("vllm-x", "1.0", "moeplan_log_signatures", "raised", "ValueError: no")
    monkeypatch.setattr(module, "known_signatures", lambda *_words: known(failure))
    with pytest.raises(PluginError) as refused:
        fatal_lines(b"kernel broke\n", None, "vllm-x")
    assert (refused.value.issues[0].path, refused.value.issues[0].code) == ("vllm-x", "raised")
