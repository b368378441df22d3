"""How fast Coral is, measured on real runs; `python -m benchmarks` writes docs/benchmarks.md."""
