"""NVIDIA: PTX to cubin to SASS, what a cubin holds, the CUDA driver."""
