"""Sites at the lowest of several minima."""
