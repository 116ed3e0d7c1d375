docker run -e VLLM_CPU_KVCACHE_SPACE=4 -e VLLM_CPU_MOE_PREPACK=1 vllm/vllm-openai-cpu:v0.32.0 --model tiny-moe
