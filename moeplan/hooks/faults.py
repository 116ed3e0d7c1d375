"""What a plugin did wrong, as an exception that goes from where it is seen to the host."""

from __future__ import annotations

import os
from collections.abc import Sequence
from traceback import extract_tb

from moeplan.errors import InputRefusedError, escape

__all__ = ["MAX_ISSUES", "Fault"]

MAX_ISSUES = 100
"""How many of the faults that a plugin finds in its input are kept."""


class Fault(Exception):
    """What a plugin did wrong, with a code of ``FAILURE_CODES``; ``issues`` are what it found wrong in its input."""

    def __init__(self, code: str, message: str, issues: Sequence[dict[str, str | None]] = ()) -> None:
        self.code = code
        self.message = escape(message, 1000)
        self.issues = tuple(issues)
        super().__init__(code, self.message)

    @classmethod
    def of(cls, code: str, doing: str, error: BaseException) -> Fault:
        """Return the fault for an exception the plugin raised, with the place it came from."""
        try:
            said = str(error)
        except Exception:
            said = "(its text cannot be had)"
        frames = extract_tb(error.__traceback__)
        place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
        return cls(code, f"{doing} raised {type(error).__name__}{place}: {said}")

    @classmethod
    def refusing(cls, error: InputRefusedError) -> Fault:
        """Return the fault of a hook that finds its input wrong and says what is, which is the plugin's right."""
        try:
            shown = [
                {key: None if text is None else escape(str(text), 1000) or "?" for key, text in issue.to_json().items()}
                for issue in error.issues[:MAX_ISSUES]
            ]
        except Exception:  # issues that are none
            return cls.of("raised", "the hook", error)
        return cls("input_refused", f"the input is refused: {error}", shown)
