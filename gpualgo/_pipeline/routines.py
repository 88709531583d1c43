from gpualgo._cpu.plan import Routine, bytes_of, compiled, of_numpy

__all__ = ["Routine", "bytes_of", "compiled", "of_numpy"]
