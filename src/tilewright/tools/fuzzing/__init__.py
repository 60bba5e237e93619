"""Random PTX programs, assembled in several ways and run beside the emulator: what `scripts/fuzz_ptxas.py` stands on."""
