"""`python -m toolwise` is the `toolwise` command."""

from __future__ import annotations

from toolwise.cli import main

if __name__ == "__main__":  # worker processes import this module again
    main()
