"""Vocabulary: values, errors, limits, strict JSON, schemas and the clock. Imports nothing of ours; no I/O."""
