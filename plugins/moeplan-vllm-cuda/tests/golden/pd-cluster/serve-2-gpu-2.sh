#!/bin/sh
# decode on gpu-2
set -eu
export HF_HUB_OFFLINE=1
export UCX_TLS=rc,cuda_copy
export VLLM_ENGINE_READY_TIMEOUT_S=1920
export VLLM_HOST_IP=192.0.2.2
export GLOO_SOCKET_IFNAME=ens1
export NCCL_SOCKET_IFNAME=ens1
export NCCL_IB_HCA==mlx5_0,mlx5_1
export NCCL_IB_GID_INDEX=3
export VLLM_NIXL_SIDE_CHANNEL_HOST=192.0.2.2
export VLLM_NIXL_SIDE_CHANNEL_PORT=5600
export UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1
export UCX_IB_GID_INDEX=3
exec vllm serve /mnt/array/models/Qwen3-30B-A3B \
  --served-model-name qwen3-30b-a3b \
  --port 8000 \
  --tensor-parallel-size 8 \
  --gpu-memory-utilization 0.90 \
  --max-num-batched-tokens 8192 \
  --compilation-config '{"cudagraph_mode": "FULL_DECODE_ONLY"}' \
  --kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "kv_consumer", "kv_load_failure_policy": "fail"}' \
  --max-model-len 8192 \
  --max-num-seqs 8
