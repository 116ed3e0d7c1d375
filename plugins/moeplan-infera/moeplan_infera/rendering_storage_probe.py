"""Looks at a model directory, mounted itself into a pod; it runs alone, on Python 3.8 or later.

Variables: DIRECTORY (where it is mounted), TARGET and DRAFT (names below it; DRAFT may be empty), SHARDS (how many
files the target's index names; 0 is any), BYTES (the least they hold together), MOUNTS (the table of mounts, for
tests). It ends with 1 where something is wrong.
"""

from __future__ import annotations

import json
import os

LOCAL = ("xfs", "ext4")


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


def mounts(directory: str, names: list[str], table: str, faults: list[str]) -> tuple[str, str]:
    """Check the mounts of a directory, which is one itself, and of names below it; return the directory's own."""
    point, kind, source = mount_of(directory, table)
    if point != directory:
        faults.append(f"{directory} is no mount of its own; what it lies on cannot be told")
    for path in (directory, *(os.path.join(directory, name) for name in names)):
        _point, on, what = mount_of(path, table)
        if on not in LOCAL:
            faults.append(f"{path} lies on {on} ({what}); local xfs or ext4 is wanted")
    return kind, source


def shards(directory: str, faults: list[str]) -> tuple[int, int]:
    """Return number and bytes of the files that the checkpoint's index names."""
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
    faults: list[str] = []
    names = [name for name in (target, draft) if name]
    kind, source = mounts(directory, names, os.environ.get("MOUNTS", "/proc/self/mountinfo"), faults)
    weights(os.path.join(directory, target), faults)
    count, total = shards(os.path.join(directory, target), faults)
    if wanted and count != wanted:
        faults.append(f"the index names {count} files, {wanted} are wanted")
    if total < least:
        faults.append(f"the files hold {total} bytes, at least {least} are wanted")
    if draft:
        weights(os.path.join(directory, draft), faults)
    told = {"filesystem": kind, "source": source, "files": count, "bytes": total, "faults": faults}
    print(json.dumps(told, indent=1))
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
