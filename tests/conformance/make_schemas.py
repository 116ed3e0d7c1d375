"""Write ``schemas/`` anew from the model: ``python -m tests.conformance.make_schemas``."""

from __future__ import annotations

import json
from pathlib import Path

from moeplan.wire.documents import DOCUMENTS
from moeplan.wire.schemas import build_schema, head_of, schema_name

SCHEMAS = Path(__file__).parents[2] / "schemas"


def rendered() -> dict[str, str]:
    """Return every schema file's name and text."""
    return {
        schema_name(*head_of(cls)): json.dumps(build_schema(cls), indent=2, ensure_ascii=True) + "\n"
        for cls in DOCUMENTS
    }


def main() -> None:
    """Write the schemas."""
    SCHEMAS.mkdir(exist_ok=True)
    for name, text in rendered().items():
        (SCHEMAS / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
