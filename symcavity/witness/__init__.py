"""Witnesses: independent computations that judge the claims of a derivation."""
