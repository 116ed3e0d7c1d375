"""What a run is to do is on the disk before its first request, and what it did is added as it happens."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs

from moeplan.model.run_manifest import RunManifest, RunObservation, RunTrial
from moeplan.wire.documents import dump_document
from moeplan.wire.files import require_free, store_error, sync_directory, write_chunks

__all__ = ["Journal"]

Files = Mapping[str, Iterable[bytes]]


class Journal:
    """The directory of a run that goes on.

    At every moment it is a valid directory of evidence: a run that was cut off is open, and lists what was made.
    """

    def __init__(self, root: Path | str, manifest: RunManifest) -> None:
        """Open the run: write its manifest, announced and open, into a directory that is missing or empty.

        Raises:
            StoreError: the directory is in the way or cannot be written.
        """
        self._root = Path(os.path.abspath(root))
        try:
            require_free(self._root)
            self._root.mkdir(exist_ok=True)
            sync_directory(self._root.parent)
        except OSError as error:
            raise store_error(root, error, "write") from None
        self.manifest = attrs.evolve(manifest, announced=True, state="open")
        self._save()

    @property
    def manifest_path(self) -> str:
        """Where the manifest lies in the directory."""
        return f"evidence/{self.manifest.run}.json"

    def add_trial(self, trial: RunTrial, files: Files) -> None:
        """Write a trial's files, then list it."""
        self._write(files)
        self.manifest = attrs.evolve(self.manifest, trials=(*self.manifest.trials, trial))
        self._save()

    def add_observation(self, observation: RunObservation, files: Files) -> None:
        """Write an observation's files, then list it."""
        self._write(files)
        self.manifest = attrs.evolve(self.manifest, observations=(*self.manifest.observations, observation))
        self._save()

    def close(self) -> None:
        """Say that the run ended as it was to."""
        self.manifest = attrs.evolve(self.manifest, state="closed")
        self._save()

    def _save(self) -> None:
        self._write({self.manifest_path: (dump_document(self.manifest),)})

    def _write(self, files: Files) -> None:
        for path, chunks in files.items():
            target = self._root / path
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise store_error(target, error, "write") from None
            write_chunks(target, chunks)
