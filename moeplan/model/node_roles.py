"""The roles that nodes play; a module of its own, because what plugins tell of a site needs no more of its model."""

from __future__ import annotations

__all__ = ["NODE_ROLES"]

NODE_ROLES = ("serve", "server", "prefill", "decode", "leader", "worker", "any")
"""What a node is for; ``any`` serves every role."""
