"""The CUDA driver: devices, streams, memory, and copies between host and device."""
