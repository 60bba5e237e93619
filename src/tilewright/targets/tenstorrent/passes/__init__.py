"""The passes of stage `tt`, one a file, in the order of `standard.STANDARD`."""
