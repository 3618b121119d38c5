"""Proofs by interval arithmetic that a box holds one solution."""
