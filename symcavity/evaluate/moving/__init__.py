"""Theories of states that move, filled forward in time."""
