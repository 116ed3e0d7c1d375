#!/bin/sh
# serve on gpu-1
set -eu
export HF_HUB_OFFLINE=1
export VLLM_ENGINE_READY_TIMEOUT_S=3600
exec vllm serve /mnt/nvme/models/DeepSeek-V4-Pro \
  --served-model-name deepseek-v4-pro \
  --port 8000 \
  --tensor-parallel-size 8 \
  --enable-expert-parallel \
  --gpu-memory-utilization 0.95 \
  --max-num-batched-tokens 8192 \
  --trust-remote-code \
  --kv-cache-dtype fp8 \
  --block-size 256 \
  --max-model-len 200000 \
  --max-num-seqs 16 \
  --no-enable-flashinfer-autotune \
  --compilation-config '{"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}' \
  --tokenizer-mode deepseek_v4 \
  --tool-call-parser deepseek_v4 \
  --enable-auto-tool-choice \
  --reasoning-parser deepseek_v4
