"""Laws that are given by convex sets: the site projects its field."""
