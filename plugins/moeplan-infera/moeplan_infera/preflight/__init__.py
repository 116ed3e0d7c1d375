"""Infera's preflight: its files read, judged again from their raw values, and compared across hosts.

Source: AMD-AGI/Infera at 5890f7f, ``infera/tools/preflight``. What a plugin re-exports is in
:mod:`moeplan_infera.preflight.hooks`.
"""
