"""What renderers of vLLM deployments share."""
