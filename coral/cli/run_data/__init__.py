"""What the commands do with runs: find them, send requests, follow submissions and pulses, compare runs."""
