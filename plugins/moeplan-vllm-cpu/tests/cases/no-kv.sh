docker run --rm vllm-openai-cpu:v0.32.0 --model tiny-moe
