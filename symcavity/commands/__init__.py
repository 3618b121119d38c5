"""What the commands of the command line do, and how their arguments are read."""
