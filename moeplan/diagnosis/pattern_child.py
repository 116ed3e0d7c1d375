"""Search texts with Python's own engine in a process of its own, which ends when its processor time is used up.

Standard library only: it is run as a file, isolated. Reads one JSON object a line, ``{"pattern", "texts",
"budgetMicroseconds"}``, and answers each with ``{"found": [index …], "microseconds"}``.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time

__all__ = ["main"]


def main() -> None:
    """Answer requests until standard input ends; SIGPROF ends the process within one that takes too long."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # whoever started the parent may have it ignored
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        began = time.process_time_ns()
        signal.setitimer(signal.ITIMER_PROF, asked["budgetMicroseconds"] / 1e6)
        search = re.compile(asked["pattern"], re.ASCII).search
        found = [index for index, text in enumerate(asked["texts"]) if search(text)]
        signal.setitimer(signal.ITIMER_PROF, 0)
        took = (time.process_time_ns() - began) // 1000
        sys.stdout.buffer.write(json.dumps({"found": found, "microseconds": took}).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
