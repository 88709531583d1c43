"""What `gpualgo.explain` returns: plain attributes, and a text to be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Touched(NamedTuple):
    """Memory that a step is given: what it is, and how many bytes it has."""

    name: str
    num_bytes: int


@dataclass(frozen=True)
class Step:
    """One thing that a call does: a kernel's launch, a memset, or a function on the CPU.

    What is not known, or not of this kind of step, is None.

    Attributes
    ----------
    name : str
        Of a GPU's kernel its name, of the CPU's what it computes ("reduce", "packed sort"); of a
        function of NumPy's ``"numpy.sort"``, say.
    expression : str
        A GPU's kernel with its policy, as template arguments in C++; else empty.
    is_compiled : bool
        Whether it is a kernel of this package; False: a function of NumPy's, or a memset.
    grid, block : int or None
        Blocks of the launch, and threads of a block.
    registers, shared_bytes, local_bytes : int or None
        Of a GPU's kernel, as its machine code says: registers of a thread, shared memory of a
        block (static, and what the launch adds), and stack and spilled registers of a thread.
    tile, tasks, threads : int or None
        On the CPU: elements of a task, how many tasks there are, and how many threads share them,
        at most. How many really do is decided by a look at the clock.
    memory : tuple of Touched
        On a GPU: the arrays and temporary storage that it is given.
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
        """Bytes of what it is given, each array counted once, as a whole."""
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
            parts.append(f"{self.local_bytes} bytes of stack or spilled registers a thread")
        if self.tasks is not None:
            parts.append("compiled" if self.is_compiled else "NumPy's own")
            parts.append(f"{_count(self.tasks, 'task')} of {_count(self.tile or 0, 'element')}")
            most = "at most " if self.threads != 1 else ""
            parts.append(f"{most}{_count(self.threads or 1, 'thread')}")
        if self.memory:
            parts.append(" + ".join(f"{each.name} {each.num_bytes}" for each in self.memory))
        return ", ".join(parts)


@dataclass(frozen=True)
class Explanation:
    """What a call would do, and where: what `gpualgo.explain` returns.

    Attributes
    ----------
    function : str
        The algorithm's name.
    device : str
        ``"cpu"`` or ``"cuda:0"``.
    why : str
        What has decided on the device.
    temp_storage_bytes : int or None
        What the call takes on a GPU besides its arrays, as `gpualgo.temp_storage_bytes`; 0 on the
        CPU, None for arrays of the host that travel to a GPU, where the blocks decide.
    launches : int or None
        How many kernels it launches; 0 on the CPU, None as above.
    steps : tuple of Step
        What it does, in order; empty where no element is read, and where blocks decide.
    bytes_read, bytes_written : int
        Of the inputs and of the results, each byte once: what no algorithm can do without. Bytes
        that a result may have at most are all counted.
    bandwidth : float or None
        Bytes per second that the GPU's memory moves at most, as its clock and width tell; None on
        the CPU, and where the driver does not tell them.
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
        """Bytes that the steps are given, each step's arrays as a whole: an upper bound."""
        return sum(step.num_bytes for step in self.steps)

    @property
    def expected_seconds(self) -> float | None:
        """`bytes_moved` at the GPU's `bandwidth`; None on the CPU, and where either is unknown.

        Launches (2 to 4 µs each) and what an operator computes are not in it, and what lies in
        the GPU's cache is faster.
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
                f"{self.bandwidth / 1e9:.0f} GB/s, and the launches"
            )
        return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
