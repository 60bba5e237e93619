"""The commands of `tilewright`, one module each; `tilewright.tools.cli` imports one when it is called."""
