"""The verdict that nothing certain can be said."""


class UnprovableError(Exception):
    """Why nothing certain can be said of what a function reaches."""
