"""How often the engine may be asked about places of schemas: a schema may be written by anyone, and each try costs."""

from __future__ import annotations


class TooManyPlaces(Exception):
    """More places were to be tried than may be."""


class Tries:
    """So many, of one schema or of all those of a request."""

    def __init__(self, most: int) -> None:
        self.left = most

    def spend(self) -> None:
        """Raises TooManyPlaces."""
        if not self.left:
            raise TooManyPlaces
        self.left -= 1
