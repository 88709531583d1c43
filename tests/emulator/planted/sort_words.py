"""Bugs of what packs numbers into words that are sorted, and of how such words are ordered."""

from __future__ import annotations

from emulator.planted.bug import WRONG, Bug, bug

_WORDS = "radix_sort/words.cuh"
_KEYS = "radix_sort/keys.cuh"

BUGS: tuple[Bug, ...] = (
    bug(
        "words: reads one number too many",
        _WORDS,
        "if (index >= params.num_items) break;\n    int64 item = index;",
        "if (index > params.num_items) break;\n    int64 item = index;",
        "sort tuples",
        "OUT OF BOUNDS",
    ),
    bug(
        "words: a number in another's place",
        _WORDS,
        "number << at % 8 * 8",
        "number << at % 4 * 8",
        "sort tuples",
        WRONG,
    ),
    bug(
        "words: indices of the first row alone",
        _WORDS,
        "item = row_begin + int64(",
        "item = int64(",
        "sort wide tuples",
        WRONG,
    ),
    bug(
        "words: writes one number too many",
        _WORDS,
        "if (index >= params.num_items) break;\n    int64 offsets",
        "if (index > params.num_items) break;\n    int64 offsets",
        "sort tuples",
        "OUT OF BOUNDS",
    ),
    bug(
        "words: numbers from another's place",
        _WORDS,
        ">> at % 8 * 8",
        ">> at % 4 * 8",
        "sort tuples",
        WRONG,
    ),
    bug(
        "words: the second half is the first",
        _WORDS,
        "words[k].items[at / 8] |= number",
        "words[k].items[at / 16] |= number",
        "sort tuples",
        WRONG,
    ),
    bug(
        "keys: words in the order of their bits",
        _KEYS,
        "Ordered(Order::ordered(typename Order::Key(key >> below))) << below",
        "Ordered(typename Order::Key(key >> below)) << below",
        "sort tuples",
        WRONG,
    ),
    bug(
        "keys: a word's last number decides nothing",
        _KEYS,
        "return first | ordered_each<Ordered, Rest...>(key);",
        "return first;",
        "sort tuples",
        WRONG,
    ),
)
