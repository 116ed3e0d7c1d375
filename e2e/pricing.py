"""What the host costs: a made-up price, since nobody pays for it, with its date and where it comes from."""

from __future__ import annotations

from pathlib import Path

from e2e.commands import moeplan
from e2e.work import Work

__all__ = ["declare_price"]


def declare_price(work: Work) -> Path:
    """Write the price's record and return where it lies."""
    out = work.path("evidence-price")
    moeplan(
        "import", "price", "--currency", "USD", "--per-accelerator-hour", "0.10", "--accelerators", "1",
        "--dated", "2026-12-01", "--source", "made up for the end-to-end run", *work.deployment(), "-o", out,
    )  # fmt: skip
    return out
