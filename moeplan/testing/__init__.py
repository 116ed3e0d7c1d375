"""The kit with which the author of a plugin proves it: subclass :class:`RuntimePluginSuite` and run pytest.

This is the one room that imports pytest; ``pip install moeplan[testing]`` brings it.
"""

from __future__ import annotations

from moeplan.testing.cases import CheckCase, LintCase, LintGolden, LogCase, RenderGolden
from moeplan.testing.suite import RuntimePluginSuite

__all__ = ["CheckCase", "LintCase", "LintGolden", "LogCase", "RenderGolden", "RuntimePluginSuite"]
