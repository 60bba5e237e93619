"""Profilers: NVIDIA's, run with reports kept in `profiles/`, and the emulator's counters."""
