"""What machine code says of itself: its text, registers, blocks, lanes and lines."""
