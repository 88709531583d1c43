"""Functions that sort, and that look up in what is sorted."""
