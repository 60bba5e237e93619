"""Checkers fed with events, without a machine."""
