export VLLM_CPU_KVCACHE_SPACE=4
vllm serve ./tiny-moe --dtype bfloat16 --enable-expert-parallel --enable-eplb
