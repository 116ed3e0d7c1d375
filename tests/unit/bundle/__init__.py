"""Tests of the bundle room."""
