"""The explorer: every stage of a compiled function side by side, in one page that needs nothing but a browser."""
