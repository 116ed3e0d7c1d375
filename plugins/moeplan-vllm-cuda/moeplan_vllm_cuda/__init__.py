"""moeplan's plugin for vLLM on NVIDIA GPUs."""
