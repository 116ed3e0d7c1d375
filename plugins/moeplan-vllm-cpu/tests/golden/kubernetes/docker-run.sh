#!/bin/sh
set -eu
exec docker run \
  --rm \
  --publish 8000:8000 \
  --shm-size 4g \
  --env VLLM_CPU_KVCACHE_SPACE=4 \
  --env HF_HUB_OFFLINE=1 \
  --volume /data/models:/models:ro \
  --entrypoint vllm vllm/vllm-openai-cpu@sha256:2b0b04a9a1a3bd2b1a1b5ae4f9a2b7f8a0f2d1c3e4b5a6978879605142332415 serve /models/tiny-moe \
  --served-model-name tiny-moe \
  --port 8000 \
  --dtype bfloat16 \
  --max-model-len 256 \
  --max-num-seqs 4 \
  --tensor-parallel-size 1
