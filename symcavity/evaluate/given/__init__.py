"""The values of a call: read, checked, exact, and in units of their own."""
