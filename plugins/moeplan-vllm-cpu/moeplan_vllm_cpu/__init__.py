"""moeplan's plugin for vLLM on CPUs, for development and tests."""
