#!/bin/sh
# Paired measurements against PyTorch. PEER is a Python that has torch; without
# one only kiln's own figures are printed.
cd "$(dirname "$0")/.." && exec python3 bench/run.py "$@"
