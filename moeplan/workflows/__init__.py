"""Joins of sibling rooms, each for one command."""
