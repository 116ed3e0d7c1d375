"""The facts of vLLM on NVIDIA GPUs, as data files."""
