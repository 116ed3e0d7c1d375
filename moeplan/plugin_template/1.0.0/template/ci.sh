#!/bin/sh
# What a change has to pass: sh ci.sh
set -eu
python -m ruff format --check
python -m ruff check
python -m mypy
python -m pytest
