"""Errors, settings, source places, fingerprints: what every other part may use."""
