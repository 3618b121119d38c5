"""Symbolic tools that know nothing of cavities."""
