#!/bin/sh
set -eu
export VLLM_CPU_KVCACHE_SPACE=4
export HF_HUB_OFFLINE=1
exec vllm serve '/home/me/my models/tiny-moe' \
  --served-model-name tiny-moe \
  --port 8000 \
  --dtype bfloat16 \
  --max-model-len 256 \
  --max-num-seqs 4 \
  --tensor-parallel-size 1
