"""Solutions: unknowns, observables, and quantities of two sites and of two copies."""
