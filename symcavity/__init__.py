"""symcavity."""
