"""Looks at a model directory, mounted itself into a pod; it runs alone, on Python 3.8 or later.

Variables: DIRECTORY (where it is mounted), TARGET and DRAFT (names below it; DRAFT may be empty), BYTES (the least the
target's files hold together), MOUNTS (the table of mounts, for tests). It ends with 1 where something is wrong.
"""

from __future__ import annotations

import json
import os

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "fuse", "fuse.s3fs", "fuse.juicefs", "9p", "beegfs")


def mount_of(directory: str, table: str) -> tuple[str, str]:
    """Return file system and source of the mount a directory is; "" where it is none of its own."""
    with open(table) as stream:
        for line in stream:
            before, _, after = line.partition(" - ")
            if before.split()[4] == directory:
                return after.split()[0], after.split()[1]
    return "", ""


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
    least, faults = int(os.environ["BYTES"]), []
    kind, source = mount_of(directory, os.environ.get("MOUNTS", "/proc/self/mountinfo"))
    if not kind or kind in NETWORK:
        faults.append(f"the directory lies on {kind or 'nothing of its own'} ({source}); a local disk is wanted")
    weights(os.path.join(directory, target), faults)
    count, total = shards(os.path.join(directory, target), faults)
    if total < least:
        faults.append(f"{count} files hold {total} bytes, at least {least} are wanted")
    if draft:
        weights(os.path.join(directory, draft), faults)
    told = {"filesystem": kind, "source": source, "files": count, "bytes": total, "faults": faults}
    print(json.dumps(told, indent=1))
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
