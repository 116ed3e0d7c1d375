#!/bin/sh
# the router
set -eu
exec vllm-router \
  --vllm-pd-disaggregation \
  --policy round_robin \
  --prefill http://192.0.2.1:8000 \
  --decode http://192.0.2.3:8000 \
  --host 0.0.0.0 \
  --port 8080 \
  --intra-node-data-parallel-size 1
