"""The enforcement point: the only place where a call becomes an effect."""
