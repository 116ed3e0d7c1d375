"""Bytes to model and back: strict JSON, canonical bytes, schemas, converter, Parquet tables."""
