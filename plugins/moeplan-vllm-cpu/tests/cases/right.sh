export VLLM_CPU_KVCACHE_SPACE=4
export VLLM_CPU_OMP_THREADS_BIND='0-31|32-63'
exec vllm serve /models/tiny-moe --dtype bfloat16 --tensor-parallel-size 2 --enable-expert-parallel
