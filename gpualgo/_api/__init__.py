"""Public functions around calls: graphs, prepare, explain, storage and warm-up."""
