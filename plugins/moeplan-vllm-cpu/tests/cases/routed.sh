export VLLM_CPU_KVCACHE_SPACE=4
vllm serve ./tiny-moe --enable-return-routed-experts
