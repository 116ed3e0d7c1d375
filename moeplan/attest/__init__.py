"""Attestations: who may say what, and whether they said it."""
