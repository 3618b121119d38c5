"""Evaluation to any number of digits."""
