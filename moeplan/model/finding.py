"""A finding: something a person should know, with a stable code."""

from __future__ import annotations

import attrs

from moeplan.model.fields import choice, identifier, text

__all__ = ["Finding"]


@attrs.frozen
class Finding:
    """One finding of an importer or a check."""

    code: str = identifier()
    severity: str = choice("info", "warning", "error")
    message: str = text()
    where: str | None = text(optional=True)
