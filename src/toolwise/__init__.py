"""Toolwise teaches an open language model when and how to call tools, and runs those calls safely."""

__version__ = "0.1.0"

__all__ = ["__version__"]
