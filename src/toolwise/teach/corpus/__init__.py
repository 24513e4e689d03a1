"""Documents for teaching: their passages and numbers, and the rules that choose passages."""

from toolwise.teach.corpus.passages import cut

__all__ = ["cut"]
