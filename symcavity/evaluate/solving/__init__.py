"""The closed map, Newton's method on it, and the attempts that lead to a solution or to a proof that there is none."""
