"""Two plans, or two verdicts, side by side."""
