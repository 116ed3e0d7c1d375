from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from moeplan.errors import InputError, StoreError
from moeplan.model.pseudonyms import pseudonym
from moeplan.wire.pseudonym_key import read_pseudonym_key


def test_the_pseudonym_is_the_hmac_that_openssl_makes() -> None:
    shown = subprocess.run(
        ["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", "hexkey:" + "ab" * 32],
        input=b"node\0gpu-host-7",
        capture_output=True,
        check=True,
    ).stdout.decode()
    assert pseudonym(b"\xab" * 32, "node", "gpu-host-7") == "node-" + shown.split()[-1][:12]


def test_pseudonyms_tell_names_kinds_and_keys_apart() -> None:
    key = b"\x01" * 32
    made = {pseudonym(key, "node", "a"), pseudonym(key, "gpu", "a"), pseudonym(key, "node", "b")}
    assert len(made | {pseudonym(b"\x02" * 32, "node", "a")}) == 4
    assert all(re.fullmatch(r"(node|gpu)-[0-9a-f]{12}", one) for one in made)
    with pytest.raises(ValueError, match="no kind"):
        pseudonym(key, "person", "a")


def test_a_missing_key_is_made_for_its_owner_alone_and_then_kept(tmp_path: Path) -> None:
    path = tmp_path / "pseudonyms.key"
    key = read_pseudonym_key(path)
    assert (len(key), os.stat(path).st_mode & 0o777) == (32, 0o600)
    assert read_pseudonym_key(path) == key
    assert read_pseudonym_key(tmp_path / "other.key") != key


def test_a_key_that_others_may_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pseudonyms.key"
    read_pseudonym_key(path)
    path.chmod(0o640)
    with pytest.raises(InputError) as refused:
        read_pseudonym_key(path)
    assert refused.value.issues[0].code == "key_exposed"
    path.chmod(0o600)
    path.write_text("secret\n")
    with pytest.raises(InputError) as refused:
        read_pseudonym_key(path)
    assert refused.value.issues[0].code == "invalid_key"
    with pytest.raises(StoreError):
        read_pseudonym_key(tmp_path / "missing" / "key")
