"""What data cannot say of vLLM: values that follow from several arguments, and rules that compare launches."""
