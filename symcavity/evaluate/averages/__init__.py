"""Averages over single sites in numbers: code, nodes, panels, and any number of digits."""
