"""Judges of ``runtime_load``."""

from __future__ import annotations

from collections.abc import Mapping

from moeplan.evaluation.judgement import Judge

__all__ = ["JUDGES"]

JUDGES: Mapping[str, Judge] = {}
