"""The file that holds the key of pseudonyms: 64 hex digits, readable by its owner alone."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from pathlib import Path

from moeplan.errors import InputError, Issue, escape
from moeplan.model.pseudonyms import KEY_BYTES
from moeplan.wire.files import read_file, store_error

__all__ = ["read_pseudonym_key"]

_KEY = re.compile(rb"([0-9a-f]{64})\n?")


def read_pseudonym_key(path: Path | str) -> bytes:
    """Return the key in a file; one that is missing is made with a new key and mode 0600.

    Raises:
        InputError: the file is no key, or others may read it.
        StoreError: it cannot be read or made.
    """
    where = escape(str(path), 400)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError) or error.errno != errno.EEXIST:
            raise _refused(where, path, error) from None
    else:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_hex(KEY_BYTES).encode() + b"\n")
    match = _KEY.fullmatch(read_file(path, max_bytes=1024))
    if match is None:
        step = "name a file that does not exist yet, and a key is made"
        raise InputError(Issue(where, "invalid_key", "not a key of pseudonyms", "64 hex digits", None, step))
    if os.name == "posix" and stat.S_IMODE(os.stat(path).st_mode) & 0o077:
        message, step = "others may read this key", f"chmod 600 {where}"
        raise InputError(Issue(where, "key_exposed", message, "mode 0600", None, step))
    return bytes.fromhex(match[1].decode())


def _refused(where: str, path: Path | str, error: OSError | ValueError) -> Exception:
    if isinstance(error, OSError):
        return store_error(path, error, "write")
    return InputError(Issue(where, "invalid_path", "path with a zero byte", "a file's path"))
