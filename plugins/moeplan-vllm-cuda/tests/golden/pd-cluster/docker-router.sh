#!/bin/sh
# the router
set -eu
exec docker run \
  --rm \
  --name qwen3-30b-a3b-router \
  --network host \
  --entrypoint vllm-router registry.example/vllm-router@sha256:2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b \
  --vllm-pd-disaggregation \
  --policy round_robin \
  --prefill http://192.0.2.1:8000 \
  --decode http://192.0.2.2:8000 \
  --host 0.0.0.0 \
  --port 8080 \
  --intra-node-data-parallel-size 1
