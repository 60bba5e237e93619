"""How the pass tensorize represents values of tile types, and plans where they are computed."""
