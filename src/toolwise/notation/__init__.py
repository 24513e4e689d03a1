"""How calls are written. Pure functions: no I/O, no torch."""
