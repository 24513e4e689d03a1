"""How HTTP APIs write conversations with tools; one file a format."""
