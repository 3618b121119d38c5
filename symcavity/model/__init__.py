"""What a user writes, and its validation."""
