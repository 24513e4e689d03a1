"""Text in: documents read strictly, their dates and numbers, their passages, and the rules that choose passages."""

from toolwise.teach.corpus.documents import corpus_digest, read_documents
from toolwise.teach.corpus.passages import cut

__all__ = ["corpus_digest", "cut", "read_documents"]
