"""Drawing layouts in the terminal, as SVG and as LaTeX."""
