"""Tests of the log diagnosis."""
