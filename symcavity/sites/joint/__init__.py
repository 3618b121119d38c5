"""Laws of several states that one equation after the other does not solve: all of them together, in numbers."""
