"""The registries this release ships, built without a converter so that a plan starts fast.

The files are in the one form of a document, so their bytes' digest is their identity; a test loads both through the
schema and the model and compares.
"""

from __future__ import annotations

import json
import pkgutil
from typing import Any

from moeplan.digest import digest_bytes
from moeplan.model.registry import (
    Accelerator,
    CompatibilityRecord,
    Defaults,
    KnownInteger,
    KnownText,
    Model,
    ModelClaims,
    Provenance,
    Registry,
    Source,
    Unknown,
)

__all__ = ["BUILT_IN", "DEFAULT_VERSION", "read_built_in"]

BUILT_IN = ("1.0.0", "1.1.0")
"""Versions shipped with this release."""
DEFAULT_VERSION = "1.1.0"


def read_built_in(version: str) -> tuple[Registry, str]:
    """Return a shipped registry and its identity."""
    # pkgutil, because importlib.resources imports a tenth of the time a plan takes to start.
    data = pkgutil.get_data("moeplan.catalogue", f"data/registry-{version}.json")
    if data is None:
        raise AssertionError("the package's loader gives no data")
    return _registry(json.loads(data)), digest_bytes(data)


def _registry(value: dict[str, Any]) -> Registry:
    defaults = value["defaults"]
    return Registry(
        kind=value["kind"],
        schema_version=value["schemaVersion"],
        registry_version=value["registryVersion"],
        defaults=Defaults(defaults["capacityUnit"], defaults["reserveBasisPoints"], defaults["acceleratorsPerNode"]),
        sources=tuple(Source(s["id"], s["url"], s["publisher"], s["retrievedAt"]) for s in value["sources"]),
        models=tuple(_model(item) for item in value["models"]),
        hardware=tuple(_accelerator(item) for item in value["hardware"]),
        compatibility=tuple(_compatibility(item) for item in value["compatibility"]),
    )


def _model(value: dict[str, Any]) -> Model:
    claims = value["claims"]
    return Model(
        value["id"],
        value["name"],
        tuple(value["aliases"]),
        value["provider"],
        value["repository"],
        value["revision"],
        value["manifestUrl"],
        ModelClaims(
            _integer(claims["totalParameters"]),
            _integer(claims["activeParameters"]),
            _integer(claims["artifactTensorBytes"]),
            _integer(claims["contextTokens"]),
            _integer(claims["routedExperts"]),
            _integer(claims["expertsPerToken"]),
            _text(claims["nativeWeightFormat"]),
            _text(claims["license"]),
        ),
    )


def _accelerator(value: dict[str, Any]) -> Accelerator:
    memory = _integer(value["memoryGigabytes"])
    return Accelerator(value["id"], value["name"], value["vendor"], tuple(value["aliases"]), memory)


def _compatibility(value: dict[str, Any]) -> CompatibilityRecord:
    return CompatibilityRecord(
        value["id"],
        value["model"],
        value["hardware"],
        value["runtime"],
        value["status"],
        value["statement"],
        _provenance(value),
    )


def _provenance(value: dict[str, Any]) -> tuple[Provenance, ...]:
    return tuple(Provenance(item["source"], item["locator"]) for item in value["provenance"])


def _integer(value: dict[str, Any]) -> KnownInteger | Unknown:
    if value["status"] == "known":
        return KnownInteger(value=value["value"], provenance=_provenance(value))
    return Unknown(reason=value["reason"], provenance=_provenance(value))


def _text(value: dict[str, Any]) -> KnownText | Unknown:
    if value["status"] == "known":
        return KnownText(value=value["value"], provenance=_provenance(value))
    return Unknown(reason=value["reason"], provenance=_provenance(value))
