"""The language: what a kernel is written in, and the tracing that turns it into the `cute` dialect."""
