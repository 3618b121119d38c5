"""What was solved: unknowns, observables, and what follows of two sites and of two copies."""
