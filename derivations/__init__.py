"""The worked systems, one declaration a file."""
