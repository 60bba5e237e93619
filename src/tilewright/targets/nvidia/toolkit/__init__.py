"""NVIDIA's tools: where they are, what they take, and what their errors mean."""
