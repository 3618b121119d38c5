"""What a derivation says: steps, their symbols, their verdicts; data without verbs."""
