"""What data cannot say of vLLM on NVIDIA GPUs: memory of the GPUs together, pairs, pods, times, variables."""
