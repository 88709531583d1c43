"""What reductions and scans share with the methods of ufuncs: axes, what is left out, dtypes."""
