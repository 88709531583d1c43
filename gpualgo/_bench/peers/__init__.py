"""Libraries to compare with, each used the way its own documentation advises."""
