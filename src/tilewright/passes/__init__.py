"""Passes: the pass list, the lowering machinery, and the passes that know no target."""
