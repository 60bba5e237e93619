"""From the `cute` dialect to `nvvm`: the rules of NVIDIA's GPUs."""
