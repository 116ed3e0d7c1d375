"""What vLLM's arguments, versions, facts and placement are: shared by the vLLM plugins of moeplan."""
