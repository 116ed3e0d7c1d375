#!/bin/sh
# serve on gpu-a
set -eu
export HF_HUB_OFFLINE=1
export VLLM_ENGINE_READY_TIMEOUT_S=1800
exec vllm serve /srv/models/Qwen3-30B-A3B \
  --served-model-name qwen3-30b-a3b \
  --port 8000 \
  --tensor-parallel-size 8 \
  --gpu-memory-utilization 0.90 \
  --max-num-batched-tokens 8192 \
  --max-model-len 8192 \
  --max-num-seqs 8
