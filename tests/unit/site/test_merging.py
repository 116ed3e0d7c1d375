"""What probes found goes into a site file: nulls are filled, comments stay, and nothing is overwritten unasked."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
import yaml

from moeplan.errors import InputError
from moeplan.model.site import SiteKubernetes, SiteNode, SiteStorage
from moeplan.model.site_probe import NodeProbe, ProbedDirectory, SiteProbe
from moeplan.site.merging import Merged, merge_probes
from moeplan.site.reading import load_site, parse_site_text

XFS = SiteStorage(filesystem="xfs", source="/dev/nvme0n1", mount_point="/data", local=True)
NFS = SiteStorage(filesystem="nfs4", source="filer:/export", mount_point="/data", local=False)


def _directory(path: str, storage: SiteStorage | None) -> ProbedDirectory:
    return ProbedDirectory(
        path=path, exists=storage is not None, storage=storage, total_bytes=None, free_bytes=None, caveats=()
    )


def _probe(*nodes: tuple[SiteNode, tuple[ProbedDirectory, ...]], version: str | None = None) -> SiteProbe:
    made = tuple(NodeProbe(values=values, directories=directories, looks=()) for values, directories in nodes)
    kubernetes = None if version is None else SiteKubernetes(version=version)
    return SiteProbe(at="2026-11-30T18:00:00Z", nodes=made, kubernetes=kubernetes, looks=())


A = SiteNode(name="a", driver="580.65.06", accelerators=8, accelerator_model="NVIDIA H200", rdma_devices=("m0", "m1"))
B = attrs.evolve(A, name="b")
ONE = _probe((A, (_directory("/data/models", XFS),)), version="v1.31.2")
TWO = _probe((A, (_directory("/data/models", XFS),)), (B, (_directory("/data/models", XFS),)))

SITE = b"""\
# our site
kind: site
schemaVersion: 1.0.0

hardware: null  # required
acceleratorsPerNode: null  # required
driver:
modelStorage: ~   # ask storage
kubernetes:
  version: null  # required
nodes:
# the only one
- name: a
  # where the weights are
  modelDirectory: null  # required
  storage:
    filesystem: null  # required
    local: null  # required
images:
  engine: null  # required
"""

FILLED = b"""\
# our site
kind: site
schemaVersion: 1.0.0

hardware: h200  # found by site probe
acceleratorsPerNode: 8  # found by site probe
driver: 580.65.06  # found by site probe
modelStorage: local-xfs   # ask storage
kubernetes:
  version: v1.31.2  # found by site probe
nodes:
# the only one
- name: a
  driver: 580.65.06  # found by site probe
  acceleratorModel: NVIDIA H200  # found by site probe
  accelerators: 8  # found by site probe
  rdmaDevices:  # found by site probe
  - m0
  - m1
  # where the weights are
  modelDirectory: /data/models  # found by site probe
  storage:
    filesystem: xfs  # found by site probe
    source: /dev/nvme0n1  # found by site probe
    mountPoint: /data  # found by site probe
    local: true  # found by site probe
images:
  engine: null  # required
"""


def test_nulls_are_filled_in_their_lines_and_comments_stay() -> None:
    merged = merge_probes(SITE, [ONE])
    assert merged.data == FILLED
    assert merged.kept_comments
    assert merged.differences == ()
    assert "$.nodes[0].storage.local" in merged.filled
    with pytest.raises(InputError) as caught:
        load_site(merged.data)
    assert [issue.path for issue in caught.value.issues] == ["$.images.engine"]


def test_the_same_again_changes_nothing() -> None:
    again = merge_probes(FILLED, [ONE])
    assert (again.data, again.filled, again.differences) == (FILLED, (), ())


def _differences(merged: Merged) -> list[tuple[str, str, str, bool]]:
    return [(one.path, one.site, one.probe, one.settled) for one in merged.differences]


def test_what_differs_stands_and_is_told_and_is_taken_only_when_asked() -> None:
    site = FILLED.replace(b"accelerators: 8  # found by site probe", b"accelerators: 4 # counted")
    merged = merge_probes(site, [ONE])
    assert merged.data == site
    assert _differences(merged) == [("$.nodes[0].accelerators", "4", "8", False)]
    merged = merge_probes(site, [ONE], prefer_probe=True)
    assert _differences(merged) == [("$.nodes[0].accelerators", "4", "8", True)]
    assert merged.data == site.replace(b"accelerators: 4 # counted", b"accelerators: 8 # counted")


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        (b"driver: 580.65.06", b"driver: 580", []),
        (b"driver: 580.65.06", b"driver: '58'", ["$.nodes[0].driver", "$.driver"]),
        (b"version: v1.31.2", b"version: '1.31'", []),
        (b"version: v1.31.2", b"version: v1.3", ["$.kubernetes.version"]),
        (b"modelStorage: local-xfs", b"modelStorage: local-nvme", []),
        (b"modelStorage: local-xfs", b"modelStorage: nfs", ["$.modelStorage"]),
        (b"hardware: h200", b"hardware: nvidia-h200-sxm", []),
        (b"filesystem: xfs", b"filesystem: ext4", ["$.nodes[0].storage.filesystem"]),
        (b"  - m0\n  - m1\n", b"  - m1\n", []),
        (b"  - m0\n  - m1\n", b"  - m2\n", ["$.nodes[0].rdmaDevices"]),
    ],
)
def test_the_same_in_other_words_is_no_difference(old: bytes, new: bytes, paths: list[str]) -> None:
    assert old in FILLED
    merged = merge_probes(FILLED.replace(old, new), [ONE])
    assert [one.path for one in merged.differences] == paths


def test_a_directory_that_is_not_there_cannot_be_settled() -> None:
    gone = _probe((A, (_directory("/data/models", None),)))
    merged = merge_probes(FILLED, [gone], prefer_probe=True)
    told = ("$.nodes[0].modelDirectory", "/data/models", "no such directory on the node", False)
    assert _differences(merged) == [told]
    assert merged.data == FILLED


def test_a_mount_that_is_not_local_contradicts_the_site() -> None:
    merged = merge_probes(FILLED, [_probe((A, (_directory("/data/models", NFS),)))])
    assert ("$.nodes[0].storage.local", "True", "False", False) in _differences(merged)
    assert ("$.modelStorage", "local-xfs", "nfs4", False) in _differences(merged)


def test_nodes_are_matched_by_name_and_never_guessed() -> None:
    two = b"nodes:\n- name: null\n  roles: [prefill]\n- name: null\n  roles: [decode]\ndriver: null\n"
    merged = merge_probes(two, [TWO])
    assert merged.notes == ("which node is which cannot be told: name them in the site; probed were a, b",)
    assert merged.filled == ("$.driver",)
    named = two.replace(b"name: null", b"name: b", 1)
    value = parse_site_text(merge_probes(named, [TWO]).data)
    assert [(node["name"], node["roles"], node["accelerators"]) for node in value["nodes"]] == [
        ("b", ["prefill"], 8),
        ("a", ["decode"], 8),
    ]
    other = merge_probes(b"nodes:\n- name: c\ndriver: null\n", [TWO])
    assert other.notes == ("the site has no node a, b",)
    assert other.filled == ()
    assert merge_probes(b"nodes: 2\n", [TWO]).notes == (
        "nodes is a count; write the nodes as a list to have their values put in",
    )


@pytest.mark.parametrize(
    "data", [b"# c\nkind: site\n", b"# c\nkind: site\nnodes: null # d\n", b"# c\nkind: site\nnodes:\n"]
)
def test_a_site_without_nodes_gets_them(data: bytes) -> None:
    merged = merge_probes(data, [TWO])
    assert merged.kept_comments
    assert merged.data.startswith(b"# c\n")
    assert [node["name"] for node in yaml.safe_load(merged.data)["nodes"]] == ["a", "b"]
    assert merge_probes(merged.data, [TWO]).data == merged.data


def test_common_values_are_filled_only_where_all_nodes_agree() -> None:
    site = b"driver: null\nacceleratorsPerNode: null\nnodes:\n- name: a\n- name: b\n"
    odd = _probe((A, ()), (attrs.evolve(B, driver="570.1"), ()))
    value = parse_site_text(merge_probes(site, [odd]).data)
    assert (value["driver"], value["acceleratorsPerNode"]) == (None, 8)
    assert [node["driver"] for node in value["nodes"]] == ["580.65.06", "570.1"]


def test_of_two_probes_of_one_node_the_later_counts_and_their_looks_add_up() -> None:
    cluster = _probe((SiteNode(name="a", accelerators=8, free_accelerators=2), ()))
    later = _probe((SiteNode(name="a", free_accelerators=8, memlock_bytes=5), (_directory("/d", XFS),)))
    [node] = parse_site_text(merge_probes(b"nodes:\n- name: a\n", [cluster, later]).data)["nodes"]
    assert (node["accelerators"], node["freeAccelerators"], node["memlockBytes"]) == (8, 8, 5)
    assert node["modelDirectory"] == "/d"
    [node] = parse_site_text(merge_probes(b"nodes:\n- name: a\n", [later, cluster]).data)["nodes"]
    assert node["freeAccelerators"] == 2


@pytest.mark.parametrize(
    "data",
    [
        b"# c\nnodes: [{name: a, accelerators: null}]\n",
        b"# c\nnodes:\n- {name: a}\n",
        b"# c\nnodes:\n- name: a\n  storage: null\n  modelDirectory: /data/models\n",
        b"# c\nnodes: []\n",
        b"# c\nnodes:\n- name: a\n  modelDirectory: >-\n    /data/models\n  storage: {filesystem: null}\n",
    ],
)
def test_a_layout_that_single_lines_cannot_change_is_written_anew(data: bytes) -> None:
    merged = merge_probes(data, [ONE])
    assert not merged.kept_comments
    assert merged.data.startswith(b"# The site, written anew")
    [node] = parse_site_text(merged.data)["nodes"]
    assert (node["name"], node["accelerators"], node["storage"]["local"]) == ("a", 8, True)


def test_json_stays_json() -> None:
    merged = merge_probes(b'{"kind": "site",\t"driver": null}', [ONE])
    value: dict[str, Any] = json.loads(merged.data)
    assert value["driver"] == "580.65.06"
    assert value["nodes"][0]["storage"]["filesystem"] == "xfs"
    assert merged.kept_comments


def test_odd_layouts_keep_what_they_are() -> None:
    data = "nodes:\r\n- name: a # ä\r\n  accelerators: null # ö\r\n  'driver': \"\"\r\n".encode()
    merged = merge_probes(data, [_probe((SiteNode(name="a", accelerators=8), ()))])
    assert merged.data.decode() == "nodes:\r\n- name: a # ä\r\n  accelerators: 8 # ö\r\n  'driver': \"\"\r\n"
    no_end = merge_probes(b"nodes:\n- name: a", [_probe((SiteNode(name="a", accelerators=8), ()))])
    assert no_end.data == b"nodes:\n- name: a\n  accelerators: 8  # found by site probe"


def test_what_is_no_site_is_refused() -> None:
    for data in (b"- 1\n", b"a: [", b'{"a": 1.5}'):
        with pytest.raises(InputError):
            merge_probes(data, [ONE])
