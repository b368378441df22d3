"""Measures how fast Coral is, on real runs; `python -m benchmarks` writes docs/benchmarks.md."""
