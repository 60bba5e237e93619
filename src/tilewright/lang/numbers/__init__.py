"""Numbers of the language: their types, and what is computed and known of them while tracing."""
