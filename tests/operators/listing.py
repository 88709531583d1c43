"""The list of what an operator may contain, as docs/operators.md has it.

Run as a program, it writes the list into the page.
"""

from __future__ import annotations

from support import REPOSITORY

from gpualgo._operators.numpy_rules import table
from gpualgo._operators.numpy_rules.table import ENTRIES, Entry

_CONTROL = ("if", "else", "while", "for", "break", "continue", "pass", "return", "lambda")

PAGE = REPOSITORY / "docs/operators.md"
_BEGIN, _END = "<!-- made by tests/operators/listing.py -->\n", "<!-- end -->\n"


def _shown(entries: list[Entry]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(entry.shown for entry in entries))


def listing() -> str:
    """Return the table of everything that an operator may contain."""
    groups = {name: [e for e in ENTRIES if e.name.startswith(f"{name}.")]
              for name in ("builtins", "math", "cmath", "operator", "np")}  # fmt: skip
    symbols = [e for e in ENTRIES if "." not in e.name]
    types = [e for e in groups["np"] if e.style == "construct"]
    exact = [e for e in groups["np"] if not e.ulp and e not in types]
    libm = [e for e in groups["np"] if e.ulp]
    attributes = [f"`a.{name}`" for name in table.PARTS]
    attributes += [f"`a.{name}()`" for name in table.METHODS]
    attributes += [f"`table.{name}`" for name in table.SIZES]
    rows = [
        ("operators", f"{_shown(symbols)}, `not in`, `and`, `or`, chains such as `0 < a < 1`"),
        ("control flow", ", ".join(f"`{word}`" for word in _CONTROL)),
        ("built-ins", _shown(groups["builtins"])),
        ("`math`", _shown(groups["math"])),
        ("`cmath`", _shown(groups["cmath"])),
        ("`operator`", _shown(groups["operator"])),
        ("NumPy, equal to the bit", _shown(exact)),
        (f"NumPy, within {table.LIBM_ULP} units in the last place", _shown(libm)),
        ("types", _shown(types) + ", `ml_dtypes.bfloat16`, and NumPy's other names of them, such "
         "as `np.longlong`, `np.intc`, `np.intp`, `np.half`"),
        ("attributes", ", ".join(attributes)),
        ("constants", "numbers, `True`, `False`, NumPy scalars, tuples of them, numbers of modules "
                      "such as `math.pi`"),
    ]  # fmt: skip
    cells = [(name, what.replace("|", "\\|")) for name, what in rows]  # which would end a cell
    return "| | |\n|---|---|\n" + "".join(f"| {name} | {what} |\n" for name, what in cells)


def parts(page: str) -> tuple[str, str, str]:
    """Return a page before, in and after the list."""
    before, _, rest = page.partition(_BEGIN)
    listed, _, after = rest.partition(_END)
    return before + _BEGIN, listed, _END + after


if __name__ == "__main__":
    before, _, after = parts(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(before + listing() + after, encoding="utf-8")
