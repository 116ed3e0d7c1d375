"""Findings of plugins as other programs and people read them: JSON, SARIF, GitHub annotations, lines of text."""
