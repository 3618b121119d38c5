"""How the law of a single site is solved, and how its quantities are averaged."""
