"""Exceptions that NumPy and Python do not already name."""


class NoDeviceError(RuntimeError):
    """A GPU was asked for by name and none can be used."""


class CompileError(RuntimeError):
    """An operator or a kernel could not be compiled; the message holds source and log."""
