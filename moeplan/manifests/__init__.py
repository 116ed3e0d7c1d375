"""The manifest toolkit for plugins: YAML with positions, pod templates, command lines, versions, quantities."""
