"""What functions that order or look up share: orders of several numbers, elements at places."""
