"""Text of C++ and Python from finished kernels."""
