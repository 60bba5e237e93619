"""Instructions that move or multiply tiles across threads, as tables: which thread holds which element."""
