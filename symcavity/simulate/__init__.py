"""Finite instances of a declared problem."""
