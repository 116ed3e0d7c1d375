#!/bin/sh
# serve on gpu-1
set -eu
export HF_HUB_OFFLINE=1
export VLLM_ENGINE_READY_TIMEOUT_S=3600
export VLLM_HOST_IP=192.0.2.1
export GLOO_SOCKET_IFNAME=ens1
export NCCL_SOCKET_IFNAME=ens1
export NCCL_IB_HCA==mlx5_0,mlx5_1
export NCCL_IB_GID_INDEX=3
exec vllm serve /mnt/nvme/models/GLM-5.2 \
  --served-model-name glm-5-2 \
  --port 8000 \
  --tensor-parallel-size 16 \
  --distributed-executor-backend mp \
  --nnodes 2 \
  --node-rank 0 \
  --master-addr 192.0.2.1 \
  --master-port 29501 \
  --gpu-memory-utilization 0.90 \
  --max-num-batched-tokens 8192 \
  --kv-cache-dtype fp8 \
  --tool-call-parser glm47 \
  --enable-auto-tool-choice \
  --reasoning-parser glm45 \
  --max-model-len 8192 \
  --max-num-seqs 8
