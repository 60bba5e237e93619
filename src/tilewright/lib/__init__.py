"""Device code written against the public face: parts that kernels are made of."""
