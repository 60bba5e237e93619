"""Random PTX programs, assembled in several ways and run beside the emulator, for `scripts/fuzz_ptxas.py`."""
