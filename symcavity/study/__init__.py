"""Studies of a theory: sensitivities, optima, phase boundaries, and your own data."""
