"""The benchmark: gpualgo beside other libraries. Run it with ``python -m bench``."""
