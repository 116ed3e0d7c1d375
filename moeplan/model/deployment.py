"""What serves: the plan's intended deployment, and the deployment an evidence record was made on."""

from __future__ import annotations

import attrs

from moeplan.model.fields import choice, digest, identifier, integer, nested, sequence, text

__all__ = ["PROFILE_PATTERN", "Deployment", "DeploymentSpec", "Parallelism", "RoleSpec", "RuntimeIdentity"]

PROFILE_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}(/[a-z0-9][a-z0-9._-]{0,63})?$"
"""A plugin's profile: a name, or a family and a name such as ``opt/aggregated``."""


@attrs.frozen
class RuntimeIdentity:
    """What code ran: an OCI image, or the installed distributions where there is no image.

    ``digest`` is the image's manifest digest for ``oci_image``, and for ``distributions`` the SHA-256 of the
    package list as it was given.
    """

    role: str = identifier()
    form: str = choice("oci_image", "distributions")
    digest: str = digest()


@attrs.frozen
class Parallelism:
    """Parallel sizes in the engine's terms; None where the plan leaves them open."""

    tensor_parallel_size: int | None = integer(ge=1, le=100_000, optional=True)
    pipeline_parallel_size: int | None = integer(ge=1, le=100_000, optional=True)
    data_parallel_size: int | None = integer(ge=1, le=100_000, optional=True)
    expert_parallel_size: int | None = integer(ge=1, le=100_000, optional=True)


@attrs.frozen
class RoleSpec:
    """One role of the deployment (``serve``, ``prefill``, ``decode``) and the runtime identity it is planned with."""

    role: str = identifier()
    runtime: RuntimeIdentity | None = nested(RuntimeIdentity, optional=True)


@attrs.frozen
class DeploymentSpec:
    """The deployment a plan is made for; every part not decided is null."""

    profile: str | None = text(pattern=PROFILE_PATTERN, max_length=129, optional=True)
    parallelism: Parallelism = nested(Parallelism)
    precision: str | None = identifier(optional=True)
    draft_checkpoint_root: str | None = digest(optional=True)
    roles: tuple[RoleSpec, ...] = sequence(RoleSpec, min_items=1)


@attrs.frozen
class Deployment:
    """The deployment a record was made on. Its identity is the digest of its one form."""

    checkpoint_root: str = digest()
    draft_checkpoint_root: str | None = digest(optional=True)
    runtimes: tuple[RuntimeIdentity, ...] = sequence(RuntimeIdentity, min_items=1)
    arguments: tuple[str, ...] | None = text(max_length=4096, many=True, optional=True)
    environment: tuple[str, ...] | None = text(max_length=4096, many=True, optional=True)
    manifest_set: str | None = digest(optional=True)
    nodes: tuple[str, ...] | None = identifier(many=True, optional=True)
    accelerators: tuple[str, ...] | None = identifier(many=True, optional=True)
