"""moeplan's plugin for vLLM on AMD Instinct with ROCm, AITER and Infera."""
