"""Where everything of one end-to-end run lies, and the options that every command about its deployment has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from e2e.checkpoint import NAME
from e2e.engine import engine_variables
from e2e.ground import NODE

__all__ = ["Work"]


@attrs.frozen
class Work:
    """The files of one run.

    Attributes:
        directory: everything is below it.
        environment: the engine's virtual environment.
        port: where the engine listens.
    """

    directory: Path
    environment: Path
    port: int

    def path(self, name: str) -> Path:
        """Return a file of the run by its name."""
        return self.directory / name

    @property
    def url(self) -> str:
        """Where the engine answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def model(self) -> Path:
        """The directory of the checkpoint that is served."""
        return self.path("models") / NAME

    @property
    def script(self) -> Path:
        """The rendered script that starts the engine."""
        return self.path("deploy") / "serve.sh"

    def runtime(self) -> list[str | Path]:
        """Return the options that say what serves; they are the same in every command."""
        return [
            "--runtime-packages", self.path("packages.txt"),
            "--serving-node", NODE,
            "--arguments-file", self.path("arguments.txt"),
            "--manifest-set", self.path("deploy") / "manifest-set.json",
        ]  # fmt: skip

    def deployment(self) -> list[str | Path]:
        """Return the options of a command that observes the deployment for the plan."""
        return ["--plan", self.path("plan.json"), "--checkpoint", self.path("checkpoint.json"), *self.runtime()]

    def variables(self, start: str, probe: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of one engine start: a cache and a directory of the probe's records of its own."""
        own = {f"MOEPLAN_PROBE_{name}": value for name, value in probe.items()}
        own["MOEPLAN_PROBE_DIR"] = str(self.path(f"probe-{start}"))
        return engine_variables(self.environment, self.path(f"cache-{start}"), own)
