"""The back end itself: its stages, pass list, options and reports."""
