"""Hosts of a preflight by their pseudonyms."""

from __future__ import annotations

import hashlib
import hmac

from moeplan.importers.preflight_names import with_pseudonyms
from moeplan.model.preflight import Imported, ImportedClaim, ImportedHost, ImportedRow

KEY = b"k" * 32


def word(name: str) -> str:
    return "node-" + hmac.new(KEY, f"node\0{name}".encode(), hashlib.sha256).hexdigest()[:12]


def row(item: str) -> ImportedRow:
    return ImportedRow(host="gpu-a", probe="links", item=item, metric="m", unit="boolean", value=1, state="measured")


def test_hosts_and_peers_are_hidden_and_devices_are_not() -> None:
    items = ("gpu0->1", "gpu-b nic0 -> gpu-a nic1", "gpu-b.example.org -> gpu-a rdma-gpu0", "gpu-a2")
    host = ImportedHost("gpu-a", "gpu-a.json", None, "2026-11-30 10:00:00", ())
    made = Imported(hosts=(host,), rows=tuple(map(row, items)), claims=(ImportedClaim("gpu-a.links.info", "3"),))
    hidden = with_pseudonyms(made, KEY)
    assert [one.host for one in hidden.hosts] == [word("gpu-a")]
    assert {one.host for one in hidden.rows} == {word("gpu-a")}
    assert [one.item for one in hidden.rows] == [
        "gpu0->1",
        f"{word('gpu-b')} nic0 -> {word('gpu-a')} nic1",
        f"{word('gpu-b.example.org')} -> {word('gpu-a')} rdma-gpu0",
        "gpu-a2",
    ]
    assert [claim.name for claim in hidden.claims] == [f"{word('gpu-a')}.links.info"]
    other = with_pseudonyms(made, b"x" * 32)
    assert other.hosts[0].host != hidden.hosts[0].host


def test_nothing_read_has_nothing_to_hide() -> None:
    empty = Imported(hosts=(), rows=(), claims=())
    assert with_pseudonyms(empty, KEY) == empty
