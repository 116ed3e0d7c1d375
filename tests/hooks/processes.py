"""Whether a process is gone."""

from __future__ import annotations

import time
from pathlib import Path


def ended(process: int, seconds: float = 10) -> bool:
    """Return whether a process is gone or waits to be collected, within some seconds."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
