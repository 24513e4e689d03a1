"""Files, addresses and databases for tools whose arguments a model chooses: reached only where the author said."""
