"""The result of `gpualgo.explain`: plain attributes and a readable text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Touched(NamedTuple):
    """An array or temporary storage that a step uses."""

    name: str
    num_bytes: int


@dataclass(frozen=True)
class Step:
    """A step of a call: the launch of a kernel, a memset, or a routine on the CPU.

    Attributes that are unknown, or do not apply to this kind of step, are None.

    Attributes
    ----------
    name : str
        The name of a GPU kernel; on the CPU what the routine computes ("reduce", "packed sort"), or
        the name of a NumPy function such as ``"numpy.sort"``.
    expression : str
        For a GPU kernel its policy as C++ template arguments; else empty.
    is_compiled : bool
        Whether it is a kernel of this package; False for a NumPy function or a memset.
    grid, block : int or None
        The number of blocks, and of threads per block.
    registers, shared_bytes, local_bytes : int or None
        For a GPU kernel, read from its machine code: registers per thread, shared memory per block
        (static plus dynamic), and stack and spilled registers per thread in bytes.
    tile, tasks, threads : int or None
        On the CPU: elements per task, the number of tasks, and the most threads that share them.
        The actual number of threads depends on timing.
    memory : tuple of Touched
        On a GPU: the arrays and temporary storage that the step uses.
    """

    name: str
    expression: str = ""
    is_compiled: bool = True
    grid: int | None = None
    block: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    tile: int | None = None
    tasks: int | None = None
    threads: int | None = None
    memory: tuple[Touched, ...] = ()

    @property
    def num_bytes(self) -> int:
        """Total bytes of `memory`; each array is counted once, as a whole."""
        return sum(each.num_bytes for each in self.memory)

    def __str__(self) -> str:
        parts = [self.expression or self.name]
        if self.grid is not None:
            parts.append(f"{self.grid} x {self.block} threads")
        if self.registers is not None:
            parts.append(f"{self.registers} registers")
        if self.shared_bytes is not None:
            parts.append(f"{self.shared_bytes} bytes of shared memory")
        if self.local_bytes:
            parts.append(f"{self.local_bytes} bytes of stack or spilled registers per thread")
        if self.tasks is not None:
            parts.append("compiled" if self.is_compiled else "NumPy function")
            parts.append(f"{_count(self.tasks, 'task')} of {_count(self.tile or 0, 'element')}")
            most = "at most " if self.threads != 1 else ""
            parts.append(f"{most}{_count(self.threads or 1, 'thread')}")
        if self.memory:
            parts.append(" + ".join(f"{each.name} {each.num_bytes}" for each in self.memory))
        return ", ".join(parts)


@dataclass(frozen=True)
class Explanation:
    """What a call would do, and where; returned by `gpualgo.explain`.

    Attributes
    ----------
    function : str
        The name of the algorithm.
    device : str
        ``"cpu"`` or ``"cuda:0"``.
    why : str
        Why this device was chosen.
    temp_storage_bytes : int or None
        GPU memory that the call needs in addition to its arrays, as `gpualgo.temp_storage_bytes`; 0
        on the CPU. None for host arrays that are copied to a GPU, where it depends on the blocks.
    launches : int or None
        The number of kernel launches; 0 on the CPU, None as above.
    steps : tuple of Step
        The steps in order; empty if no element is read, and for host arrays copied to a GPU.
    bytes_read, bytes_written : int
        Bytes of the inputs and of the results, each counted once: the least that any algorithm must
        move. A result of unknown length counts with its greatest length.
    bandwidth : float or None
        Peak bandwidth of the GPU's memory in bytes per second, from its clock and bus width; None
        on the CPU, and if the driver does not report them.
    """

    function: str
    device: str
    why: str
    temp_storage_bytes: int | None
    launches: int | None
    steps: tuple[Step, ...] = ()
    bytes_read: int = 0
    bytes_written: int = 0
    bandwidth: float | None = None

    @property
    def backend(self) -> str:
        """``"cpu"`` or ``"cuda"``."""
        return self.device.partition(":")[0]

    @property
    def bytes_moved(self) -> int:
        """Bytes of all arrays that the steps use, each counted as a whole: an upper bound."""
        return sum(step.num_bytes for step in self.steps)

    @property
    def expected_seconds(self) -> float | None:
        """`bytes_moved` at the GPU's `bandwidth`; None on the CPU, and if either is unknown.

        Launches (2 to 4 µs each) and the operator's work are not included; data in the GPU's cache
        is faster.
        """
        if not self.bandwidth or not self.bytes_moved:
            return None
        return self.bytes_moved / self.bandwidth

    def __str__(self) -> str:
        text = f"{self.function} on {self.device}: {self.why}"
        if self.backend != "cpu" and self.launches is not None:
            kernels = _count(self.launches, "kernel")
            text = f"{text}; {kernels}, {self.temp_storage_bytes} bytes of temporary storage"
        lines = [text, f"  reads {self.bytes_read} bytes, writes {self.bytes_written}"]
        lines += [f"  {i}. {step}" for i, step in enumerate(self.steps, 1)]
        seconds = self.expected_seconds
        if seconds is not None and self.bandwidth is not None:
            lines.append(
                f"  {1e6 * seconds:.1f} us for {self.bytes_moved} bytes at "
                f"{self.bandwidth / 1e9:.0f} GB/s, plus the launches"
            )
        return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
