"""Plain text in: documents read strictly from files, their dates, and where their sentences end."""

from toolwise.documents.read import corpus_digest, read_documents

__all__ = ["corpus_digest", "read_documents"]
