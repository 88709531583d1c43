"""A GPU on the host: the package runs on it unchanged, below `gpualgo._driver` and `_cuda`.

`install` puts it where the package looks for a GPU; docs/testing.md tells what it finds.
"""
