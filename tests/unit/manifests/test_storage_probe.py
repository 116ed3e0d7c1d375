"""The look at a model directory: its container, and that the two files that travel alone know the same file systems.

What the script finds is tested where it is rendered: plugins/moeplan-infera and plugins/moeplan-vllm-cuda.
"""

from __future__ import annotations

import pytest

from moeplan.manifests.probes import storage_probe_container
from moeplan.manifests.storage_probe import NETWORK, fits
from moeplan.site import node_probe


def test_both_probes_know_the_same_network_file_systems() -> None:
    assert set(NETWORK) == {kind for kind in node_probe.NETWORK if not kind.startswith("fuse")}
    assert not set(NETWORK) & node_probe.LOCAL


@pytest.mark.parametrize(
    ("kind", "wanted", "local"),
    [
        ("ext4", [], True),
        ("zfs", [], True),
        ("nfs4", [], False),
        ("fuse.s3fs", [], False),
        ("ext4", ["xfs", "ext4"], True),
        ("zfs", ["xfs", "ext4"], False),
        ("", ["xfs", "ext4"], False),
    ],
)
def test_file_systems_that_fit(kind: str, wanted: list[str], local: bool) -> None:
    assert fits(kind, wanted) is local


def test_a_container_says_what_is_looked_for_and_mounts_to_read() -> None:
    made = storage_probe_container(
        "engine@sha256:0", "/models", target="K3", draft=None, tensor_bytes=9, resources={"requests": {"cpu": "1"}}
    )
    assert {one["name"]: one["value"] for one in made["env"]} == {
        "DIRECTORY": "/models",
        "TARGET": "K3",
        "DRAFT": "",
        "FILESYSTEMS": "",
        "SHARDS": "0",
        "BYTES": "9",
    }
    assert made["volumeMounts"] == [{"name": "model", "mountPath": "/models", "readOnly": True}]
    assert made["command"][:2] == ["python3", "-c"]
    assert made["resources"] == {"requests": {"cpu": "1"}}
