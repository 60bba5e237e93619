"""The ops as they are benchmarked."""

from tilewright.tools.benching.subjects.table import SUBJECTS, subject

__all__ = ["SUBJECTS", "subject"]
