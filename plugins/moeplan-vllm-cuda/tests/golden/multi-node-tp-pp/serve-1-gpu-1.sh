#!/bin/sh
# serve on gpu-1
set -eu
export HF_HUB_OFFLINE=1
export VLLM_ENGINE_READY_TIMEOUT_S=3600
export VLLM_USE_V2_MODEL_RUNNER=1
export VLLM_USE_RUST_FRONTEND=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS=1800
export VLLM_HOST_IP=192.0.2.1
export GLOO_SOCKET_IFNAME=ens1
export NCCL_SOCKET_IFNAME=ens1
export NCCL_IB_HCA==mlx5_0,mlx5_1
export NCCL_IB_GID_INDEX=3
exec vllm serve /mnt/nvme/models/Kimi-K3 \
  --served-model-name kimi-k3 \
  --port 8000 \
  --tensor-parallel-size 8 \
  --pipeline-parallel-size 2 \
  --distributed-executor-backend mp \
  --nnodes 2 \
  --node-rank 0 \
  --master-addr 192.0.2.1 \
  --master-port 29501 \
  --gpu-memory-utilization 0.97 \
  --max-num-batched-tokens 4096 \
  --trust-remote-code \
  --max-num-seqs 5 \
  --max-model-len 32768 \
  --moe-backend marlin \
  --disable-custom-all-reduce \
  --no-enable-flashinfer-autotune \
  --attention-backend FLASHMLA \
  --enable-auto-tool-choice \
  --tool-call-parser kimi_k3 \
  --reasoning-parser kimi_k3
