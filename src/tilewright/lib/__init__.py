"""Device code and tools written against the public face: epilogues, communication."""
