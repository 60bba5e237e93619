"""Ahead-of-time export: objects, headers, and loading them."""
