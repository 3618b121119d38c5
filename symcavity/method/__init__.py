"""The method, one file per verb."""
