"""Rules about speculation: draft slots within a step's budget, and no pipeline stages."""

from __future__ import annotations

from collections.abc import Iterator

from moeplan.facts.judge import Hit
from moeplan.facts.launches import Scene, Subject
from moeplan.manifests.versions import parse_range, parse_version
from moeplan_vllm.rules.derived import speculates
from moeplan_vllm.rules.reading import count, known_text, place_of

__all__ = ["draft_slots", "speculation_in_stages"]


def draft_slots(scene: Scene) -> Iterator[Hit]:
    """C-SPC-004: a step has room for each sequence's token and its draft tokens."""
    for one in scene.engines():
        budget, sequences = count(one, "--max-num-batched-tokens", 0), count(one, "--max-num-seqs", 0)
        tokens = _draft_tokens(one)
        if not budget or not sequences or not tokens or budget > sequences * (1 + tokens):
            continue
        severity = None if budget <= sequences * tokens else "warning"
        message = (
            f"--max-num-batched-tokens {budget} for --max-num-seqs {sequences} with {tokens} draft tokens each: "
            f"more than {sequences * (1 + tokens)} are needed"
        )
        yield Hit(place_of(one, "argument --max-num-batched-tokens"), message, one, severity)


def _draft_tokens(subject: Subject) -> int | None:
    text = known_text(subject, "argument --speculative-config num_speculative_tokens")
    if text is None:
        text = known_text(subject, "argument --spec-tokens")
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 6 else None


def speculation_in_stages(scene: Scene) -> Iterator[Hit]:
    """C-SPC-001: no speculation with pipeline stages; releases after 0.27.1 take EAGLE3."""
    for one in scene.engines():
        stages = count(one, "--pipeline-parallel-size", 1)
        if stages is None or stages < 2 or not speculates(one):
            continue
        severity = _severity_in_stages(one)
        if severity != "none":
            message = f"--pipeline-parallel-size {stages} together with speculation"
            yield Hit(place_of(one, "argument --pipeline-parallel-size"), message, one, severity)


def _severity_in_stages(subject: Subject) -> str | None:
    if known_text(subject, "argument --speculative-config method") != "eagle3":
        return None
    older = parse_range("<=0.27.1").contains(parse_version(known_text(subject, "launch version")))
    return None if older else "info" if older is None else "none"
