"""Open an evidence bundle in whatever form it lies: a directory or a deterministic tar."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from moeplan.bundle.archive import TarSource
from moeplan.bundle.container import ATTESTATIONS, BUNDLE_FILE, BundleSource
from moeplan.bundle.directory import DirectorySource
from moeplan.wire.files import store_error

__all__ = ["ATTESTATIONS", "BUNDLE_FILE", "BundleSource", "DirectorySource", "TarSource", "open_source"]


def open_source(path: Path | str) -> BundleSource:
    """Return the bundle at ``path`` for reading; use it as a context manager.

    Checks the container's form only. The inventory is checked by :func:`moeplan.bundle.inventory.check_inventory`,
    signatures elsewhere.

    Raises:
        StoreError: missing, unreadable, or neither a directory nor a regular file.
        VerificationError: not in the one form of a bundle; codes begin with ``container_``.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise store_error(path, error, "read") from None
    return DirectorySource(path) if stat.S_ISDIR(mode) else TarSource(path)
