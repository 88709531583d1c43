"""Functions of preceding or neighbouring elements: cumulative sums, differences."""
