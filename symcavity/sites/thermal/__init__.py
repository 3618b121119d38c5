"""Sites at a temperature."""
