"""_driver."""
