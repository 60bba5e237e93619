"""What programs that use exported functions are built with: `aot_config` and the C runtime that loads them."""
