export VLLM_CPU_KVCACHE_SPACE=4
export VLLM_CPU_OMP_THREADS_BIND=0-31
vllm serve ./tiny-moe --tensor-parallel-size 2
