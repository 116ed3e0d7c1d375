#!/bin/sh
# decode on gpu-2
set -eu
exec docker run \
  --rm \
  --name qwen3-30b-a3b-decode \
  --network host \
  --gpus all \
  --ipc host \
  --shm-size 32g \
  --volume /mnt/array/models:/models:ro \
  --ulimit memlock=-1 \
  --cap-add IPC_LOCK \
  --device /dev/infiniband \
  --env HF_HUB_OFFLINE=1 \
  --env UCX_TLS=rc,cuda_copy \
  --env VLLM_ENGINE_READY_TIMEOUT_S=1920 \
  --env VLLM_HOST_IP=192.0.2.2 \
  --env GLOO_SOCKET_IFNAME=ens1 \
  --env NCCL_SOCKET_IFNAME=ens1 \
  --env NCCL_IB_HCA==mlx5_0,mlx5_1 \
  --env NCCL_IB_GID_INDEX=3 \
  --env VLLM_NIXL_SIDE_CHANNEL_HOST=192.0.2.2 \
  --env VLLM_NIXL_SIDE_CHANNEL_PORT=5600 \
  --env UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 \
  --env UCX_IB_GID_INDEX=3 \
  --entrypoint vllm vllm/vllm-openai:v0.27.1@sha256:1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a serve /models/Qwen3-30B-A3B \
  --served-model-name qwen3-30b-a3b \
  --port 8000 \
  --tensor-parallel-size 8 \
  --gpu-memory-utilization 0.90 \
  --max-num-batched-tokens 8192 \
  --compilation-config '{"cudagraph_mode": "FULL_DECODE_ONLY"}' \
  --kv-transfer-config '{"kv_connector": "NixlConnector", "kv_role": "kv_consumer", "kv_load_failure_policy": "fail"}' \
  --max-model-len 8192 \
  --max-num-seqs 8
