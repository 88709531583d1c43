"""Arrays that are computed where they are read: their elements' function, and what it reads."""
