"""The record of a derivation and its writers."""
