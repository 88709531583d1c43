"""The command ``gpualgo bench``: gpualgo beside its peers, each result checked, then timed."""
