#!/bin/sh
# serve on gpu-1
set -eu
exec docker run \
  --rm \
  --name glm-5-2-engine \
  --network host \
  --gpus all \
  --ipc host \
  --shm-size 32g \
  --volume /mnt/nvme/models:/models:ro \
  --ulimit memlock=-1 \
  --cap-add IPC_LOCK \
  --device /dev/infiniband \
  --env HF_HUB_OFFLINE=1 \
  --env VLLM_ENGINE_READY_TIMEOUT_S=3600 \
  --env VLLM_HOST_IP=192.0.2.1 \
  --env GLOO_SOCKET_IFNAME=ens1 \
  --env NCCL_SOCKET_IFNAME=ens1 \
  --env NCCL_IB_HCA==mlx5_0,mlx5_1 \
  --env NCCL_IB_GID_INDEX=3 \
  --entrypoint vllm vllm/vllm-openai:v0.27.1@sha256:1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a serve /models/GLM-5.2 \
  --served-model-name glm-5-2 \
  --port 8000 \
  --tensor-parallel-size 1 \
  --data-parallel-size 16 \
  --enable-expert-parallel \
  --data-parallel-size-local 8 \
  --data-parallel-address 192.0.2.1 \
  --data-parallel-rpc-port 13345 \
  --data-parallel-hybrid-lb \
  --gpu-memory-utilization 0.90 \
  --max-num-batched-tokens 8192 \
  --kv-cache-dtype fp8 \
  --tool-call-parser glm47 \
  --enable-auto-tool-choice \
  --reasoning-parser glm45 \
  --max-model-len 8192 \
  --max-num-seqs 8
