"""Tests of the manifest toolkit."""
