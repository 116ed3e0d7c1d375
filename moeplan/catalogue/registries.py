"""Load a registry and look things up in it: by id, alias, name or repository, in any case, with suggestions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from moeplan.catalogue.builtin import BUILT_IN, DEFAULT_VERSION, read_built_in
from moeplan.errors import InputError, Issue, escape
from moeplan.model.registry import Accelerator, CompatibilityRecord, Model, Registry

__all__ = [
    "BUILT_IN",
    "DEFAULT_VERSION",
    "find_accelerator",
    "find_compatibility",
    "find_model",
    "load_registry",
    "parse_registry",
    "registry_digest",
]

_KEPT = 16
_YAML_SUFFIXES = (".yaml", ".yml")

T = TypeVar("T", Model, Accelerator)


class _Index(NamedTuple):
    """What look-ups need of one registry. Holds the registry, so its id stays its own."""

    registry: Registry
    digest: str
    models: dict[str, Model]
    hardware: dict[str, Accelerator]
    compatibility: dict[tuple[str, str, str], CompatibilityRecord]


_indexes: OrderedDict[int, _Index] = OrderedDict()
_built_in: dict[str, Registry] = {}


def load_registry(version_or_path: str | None = None) -> Registry:
    """Return a registry.

    Args:
        version_or_path: a shipped version (``1.0.0``, ``1.1.0``), or the path of a registry file: JSON, or YAML
            where the name ends in ``.yaml`` or ``.yml``. None is the default, ``1.1.0``.

    Raises:
        InputError: every fault of the file, each with its JSON path.
        StoreError: the file cannot be read.
    """
    name = DEFAULT_VERSION if version_or_path is None else version_or_path
    if name not in BUILT_IN:
        return _read(name)
    if name not in _built_in:
        registry, digest = read_built_in(name)
        _built_in[name] = registry
        _keep(registry, digest)
    return _built_in[name]


def _read(path: str) -> Registry:
    from moeplan.wire.files import read_file

    if path and path.strip("0123456789.") == "":
        from pathlib import Path

        if not Path(path).exists():
            known = ", ".join(BUILT_IN)
            raise InputError(
                Issue(
                    "registry",
                    "unknown_registry",
                    "no such registry version, and no such file",
                    f"{known} or a path",
                    escape(path, 60),
                )
            )
    return parse_registry(read_file(path), yaml=path.lower().endswith(_YAML_SUFFIXES), source=escape(path, 400))


def parse_registry(data: bytes, *, yaml: bool = False, source: str | None = None) -> Registry:
    """Return the registry in ``data``: strict JSON, or YAML with JSON's types only.

    Raises:
        InputError: every fault of the first stage that finds any, each with its JSON path.
    """
    from moeplan.wire.documents import load_document, load_value

    if not yaml:
        return load_document(data, Registry, source=source)
    from moeplan.wire.yaml_text import parse_yaml_strict

    try:
        return load_value(parse_yaml_strict(data), Registry)
    except InputError as error:
        error.source = source
        raise


def registry_digest(registry: Registry) -> str:
    """Return a registry's identity: SHA-256 of its one form, as ``sha256sum`` shows it."""
    return _index(registry).digest


def find_model(registry: Registry, name: str) -> Model:
    """Return the model with this id, alias, name or repository; case and outer white space do not matter.

    Raises:
        InputError: there is none; the issue's ``next`` suggests the nearest.
    """
    return _find(_index(registry).models, name, "model", registry)


def find_accelerator(registry: Registry, name: str) -> Accelerator:
    """Return the accelerator with this id, alias or name; as :func:`find_model`.

    Raises:
        InputError: there is none; the issue's ``next`` suggests the nearest.
    """
    return _find(_index(registry).hardware, name, "hardware", registry)


def find_compatibility(registry: Registry, model: str, hardware: str, runtime: str) -> CompatibilityRecord | None:
    """Return the reviewed record for these three ids, or None."""
    return _index(registry).compatibility.get((model, hardware, runtime))


def _index(registry: Registry) -> _Index:
    found = _indexes.get(id(registry))
    if found is not None:
        return found
    from moeplan.wire.documents import identify

    return _keep(registry, identify(registry))


def _keep(registry: Registry, digest: str) -> _Index:
    made = _Index(
        registry,
        digest,
        _names((model, (model.id, model.name, model.repository, *model.aliases)) for model in registry.models),
        _names((item, (item.id, item.name, *item.aliases)) for item in registry.hardware),
        {(record.model, record.hardware, record.runtime): record for record in registry.compatibility},
    )
    _indexes[id(registry)] = made
    if len(_indexes) > _KEPT:
        _indexes.popitem(last=False)
    return made


def _names(named: Iterable[tuple[T, tuple[str, ...]]]) -> dict[str, T]:
    return {word.casefold(): item for item, words in named for word in words}


def _find(names: dict[str, T], name: str, what: str, registry: Registry) -> T:
    found = names.get(name.strip().casefold())
    if found is not None:
        return found
    from difflib import get_close_matches

    near = get_close_matches(name.strip().casefold(), names, 3, 0.5)
    ids = list(dict.fromkeys(names[word].id for word in near))
    hint = "did you mean " + " or ".join(f"'{word}'" for word in ids) + "?" if ids else None
    listed = ", ".join(dict.fromkeys(item.id for item in names.values())) or "none"
    raise InputError(
        Issue(
            f"$.{what}",
            f"unknown_{what}",
            f"no such {what} in registry {registry.registry_version}",
            f"one of {escape(listed, 400)}",
            escape(repr(name), 80),
            hint or f"see 'moeplan {'models' if what == 'model' else 'hardware'}'",
        )
    )
