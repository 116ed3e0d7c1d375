"""Looks at a model directory, mounted itself into a pod; it runs alone, on Python 3.8 or later.

Variables: DIRECTORY (where it is mounted), TARGET and DRAFT (names below it; DRAFT may be empty), FILESYSTEMS (the ones
that will do, separated by commas; empty is all that are not over a network), SHARDS (how many files of weights the
target has; 0 is any), BYTES (the least they hold together), MOUNTS (the table of mounts, for tests). It ends with 1
where something is wrong. ``moeplan.manifests.probes`` gives it to a pod.
"""

from __future__ import annotations

import json
import os

__all__ = ["NETWORK", "main"]

NETWORK = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2"),
    *("orangefs", "pvfs2", "smb3", "smbfs", "virtiofs", "wekafs"),
)
"""File systems whose bytes lie elsewhere, or may; whatever is FUSE is taken for one."""


def mount_of(path: str, table: str) -> tuple[str, str, str]:
    """Return mount point, file system and source of the mount that a path lies on: the nearest above it."""
    found = ("", "", "")
    with open(table) as stream:
        for line in stream:
            before, _, after = line.partition(" - ")
            point = before.split()[4]
            if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(found[0]):
                found = (point, after.split()[0], after.split()[1])
    return found


def fits(kind: str, wanted: list[str]) -> bool:
    """Return whether a file system is one of those wanted, or local where none is named."""
    return kind in wanted if wanted else kind not in NETWORK and not kind.startswith("fuse")


def mounts(directory: str, names: list[str], wanted: list[str], table: str, faults: list[str]) -> tuple[str, str]:
    """Check the mounts of a directory, which is one itself, and of names below it; return the directory's own."""
    local = "local " + " or ".join(wanted) if wanted else "a local disk"
    point, kind, source = mount_of(directory, table)
    if point != directory:
        faults.append(f"{directory} is no mount of its own; what it lies on cannot be told")
    for path in (directory, *(os.path.join(directory, name) for name in names)):
        _point, on, what = mount_of(path, table)
        if not fits(on, wanted):
            faults.append(f"{path} lies on {on} ({what}); {local} is wanted")
    return kind, source


def shards(directory: str, faults: list[str]) -> tuple[int, int]:
    """Return number and bytes of the files of weights: the one there is, or those that the index names."""
    names = ["model.safetensors"]
    if not os.path.exists(os.path.join(directory, names[0])):
        try:
            with open(os.path.join(directory, "model.safetensors.index.json")) as stream:
                names = sorted(set(json.load(stream)["weight_map"].values()))
        except (OSError, ValueError, KeyError) as error:
            faults.append(f"no index in {directory}: {error}")
            return 0, 0
    total = 0
    for name in names:
        try:
            total += os.stat(os.path.join(directory, name)).st_size
        except OSError as error:
            faults.append(f"{name}: {error.strerror}")
    return len(names), total


def weights(directory: str, faults: list[str]) -> None:
    """Check that a directory holds a model of some kind: its configuration and at least one file of weights."""
    try:
        names = os.listdir(directory)
    except OSError as error:
        faults.append(f"{directory}: {error.strerror}")
        return
    if "config.json" not in names or not any(name.endswith(".safetensors") for name in names):
        faults.append(f"{directory} holds no model: config.json and *.safetensors are wanted")


def main() -> None:
    """Look, say what was found, and end with 1 where something is wrong."""
    directory, target, draft = (os.environ[name] for name in ("DIRECTORY", "TARGET", "DRAFT"))
    wanted, least = int(os.environ["SHARDS"]), int(os.environ["BYTES"])
    filesystems = [name for name in os.environ["FILESYSTEMS"].split(",") if name]
    faults: list[str] = []
    names = [name for name in (target, draft) if name]
    table = os.environ.get("MOUNTS", "/proc/self/mountinfo")
    kind, source = mounts(directory, names, filesystems, table, faults)
    weights(os.path.join(directory, target), faults)
    count, total = shards(os.path.join(directory, target), faults)
    if wanted and count != wanted:
        faults.append(f"{count} files hold the weights, {wanted} are wanted")
    if total < least:
        faults.append(f"{count} files hold {total} bytes, at least {least} are wanted")
    if draft:
        weights(os.path.join(directory, draft), faults)
    told = {"filesystem": kind, "source": source, "files": count, "bytes": total, "faults": faults}
    print(json.dumps(told, indent=1))
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
