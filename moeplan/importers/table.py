"""Which tools are understood, by name."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from moeplan.importers.trial import ImportedTrial, TrialInputs
from moeplan.importers.vllm_bench import IMPORTER_VERSION, import_vllm_bench

__all__ = ["IMPORTERS", "Importer"]


@attrs.frozen
class Importer:
    """One tool's importer: pure on the file's bytes and the stated inputs."""

    tool: str
    version: str
    title: str
    read: Callable[[bytes, TrialInputs], ImportedTrial]


IMPORTERS = {
    importer.tool: importer
    for importer in (
        Importer("vllm-bench", IMPORTER_VERSION, "vllm bench serve --save-result --save-detailed", import_vllm_bench),
    )
}
