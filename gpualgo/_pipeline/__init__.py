"""From a checked call to queued kernels or CPU work."""
