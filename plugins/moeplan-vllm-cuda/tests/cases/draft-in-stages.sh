#!/usr/bin/env bash
exec vllm serve /models/DeepSeek-V3.1 --tensor-parallel-size 8 --pipeline-parallel-size 2 \
  --speculative-config '{"method": "mtp", "num_speculative_tokens": 1}'
