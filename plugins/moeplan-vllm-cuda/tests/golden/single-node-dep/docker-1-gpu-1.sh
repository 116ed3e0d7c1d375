#!/bin/sh
# serve on gpu-1
set -eu
exec docker run \
  --rm \
  --name qwen3-30b-a3b-engine \
  --network host \
  --gpus all \
  --ipc host \
  --shm-size 32g \
  --volume /mnt/nvme/models:/models:ro \
  --env HF_HUB_OFFLINE=1 \
  --env VLLM_ENGINE_READY_TIMEOUT_S=1920 \
  --entrypoint vllm vllm/vllm-openai:v0.27.1@sha256:1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a serve /models/Qwen3-30B-A3B \
  --served-model-name qwen3-30b-a3b \
  --port 8000 \
  --tensor-parallel-size 1 \
  --data-parallel-size 8 \
  --enable-expert-parallel \
  --gpu-memory-utilization 0.90 \
  --max-num-batched-tokens 8192 \
  --max-model-len 8192 \
  --max-num-seqs 16
