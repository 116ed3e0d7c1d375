"""Secrets that tests sow into inputs, and the search for them in whatever came out."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

__all__ = ["FILE_SEED", "SEEDS", "SOWN", "leaks", "leaks_in_files", "salted", "swapped"]

SEEDS = {
    "API key": "sk-seed0Kq7fGh2LmN4pQr6StU",
    "bearer header": "Bearer seedBearer91xYz",
    "user name": "seedada",
    "home path": "/home/seedada/models",
    "host name": "seedhost-7.seedcorp.example",
    "IPv4": "10.99.88.77",
    "IPv6": "fd5e:ed00::77:beef",
    "prompt": "seedprompt my diagnosis",
    "answer": "seedanswer you are ill",
    "MAC": "52:54:5e:ed:5e:ed",
    "e-mail": "seed.person@seedmail.example",
    "node name": "seednode-gpu-12",
    "GPU UUID": "GPU-5eed5eed-1111-2222-3333-444455556666",
}
SOWN = " ".join(SEEDS.values())
"""All of them in one text."""
FILE_SEED = "seedfilename"
"""Stands in the given files' own names, which may be shown and enter no record."""


def _forms(secret: str) -> Iterator[bytes]:
    raw = secret.encode()
    yield raw.lower()
    yield raw.hex().encode()
    yield urllib.parse.quote(secret, safe="").lower().encode()
    yield json.dumps(secret)[1:-1].replace("/", "\\/").lower().encode()
    for shift in range(3):  # those characters of base64 that its neighbours have no part in, at each of three places
        first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        yield base64.b64encode(b"\0" * shift + raw + b"\0\0")[first:last].lower()


def leaks(data: bytes, secrets: dict[str, str] = SEEDS) -> list[str]:
    """Return what is found in bytes, plain or in base64, hex or percent-encoding, whatever its case."""
    folded = data.lower()
    return [name for name, secret in secrets.items() if any(form in folded for form in _forms(secret))]


def leaks_in_files(root: Path, secrets: dict[str, str] = SEEDS) -> dict[str, list[str]]:
    """Return what is found by file: in its path, its bytes, and for Parquet in its values."""
    found = {}
    secrets = secrets | {"file name": FILE_SEED}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        data = str(path.relative_to(root)).encode() + b"\n" + path.read_bytes()
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            data += repr((table.to_pylist(), table.schema.metadata)).encode()
        if names := leaks(data, secrets):
            found[str(path.relative_to(root))] = names
    return found


def salted(value: Any, closed: tuple[str, ...] = ()) -> Any:
    """Return a JSON value with a text and a key of secrets in every object but those below the ``closed`` keys."""
    if isinstance(value, list):
        return [salted(each, closed) for each in value]
    if not isinstance(value, dict):
        return value
    made = {key: each if key in closed else salted(each, closed) for key, each in value.items()}
    return made | {"seeded_text": SOWN, SEEDS["host name"]: SEEDS["prompt"]}


def swapped(value: Any, text: str = SOWN) -> Iterator[tuple[str, Any]]:
    """Yield a JSON value with one text after another replaced by the secrets: what a hostile file would hold.

    Texts below equal keys are replaced together: lists of a thousand requests give one variant.
    """
    for name in sorted(set(_text_keys(value, ""))):
        yield name, _swap(value, "", name, text)


def _text_keys(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, str):
        yield path
    elif isinstance(value, list):
        for each in value:
            yield from _text_keys(each, path + "[]")
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _text_keys(each, f"{path}.{key}")


def _swap(value: Any, path: str, wanted: str, text: str) -> Any:
    if isinstance(value, str):
        return text if path == wanted else value
    if isinstance(value, list):
        return [_swap(each, path + "[]", wanted, text) for each in value]
    if isinstance(value, dict):
        return {key: _swap(each, f"{path}.{key}", wanted, text) for key, each in value.items()}
    return value
