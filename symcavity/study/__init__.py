"""What people do with a theory next: how it moves, where it is best, where it ends, and data of their own."""
