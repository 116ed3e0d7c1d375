"""Pure planning: the static floor, the criteria, the plan, and its forms."""
