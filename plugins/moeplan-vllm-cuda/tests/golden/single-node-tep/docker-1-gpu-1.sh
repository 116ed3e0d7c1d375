#!/bin/sh
# serve on gpu-1
set -eu
exec docker run \
  --rm \
  --name deepseek-v4-pro-engine \
  --network host \
  --gpus all \
  --ipc host \
  --shm-size 32g \
  --volume /mnt/nvme/models:/models:ro \
  --env HF_HUB_OFFLINE=1 \
  --env VLLM_ENGINE_READY_TIMEOUT_S=3600 \
  --entrypoint vllm vllm/vllm-openai:v0.27.1@sha256:1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a serve /models/DeepSeek-V4-Pro \
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
