#!/bin/sh
# serve on gpu-a
set -eu
exec docker run \
  --rm \
  --name qwen3-30b-a3b-engine \
  --network host \
  --gpus all \
  --ipc host \
  --shm-size 32g \
  --volume /srv/models:/models:ro \
  --env HF_HUB_OFFLINE=1 \
  --env VLLM_ENGINE_READY_TIMEOUT_S=1800 \
  --entrypoint vllm vllm/vllm-openai:v0.27.1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef serve /models/Qwen3-30B-A3B \
  --served-model-name qwen3-30b-a3b \
  --port 8000 \
  --tensor-parallel-size 8 \
  --gpu-memory-utilization 0.90 \
  --max-num-batched-tokens 8192 \
  --max-model-len 8192 \
  --max-num-seqs 8
