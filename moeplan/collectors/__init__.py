"""Observing a live system: what these modules see becomes evidence records."""
