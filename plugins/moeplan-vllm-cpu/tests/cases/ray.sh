export VLLM_CPU_KVCACHE_SPACE=4
vllm serve ./tiny-moe --distributed-executor-backend ray
