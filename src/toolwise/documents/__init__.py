"""Plain text in: documents read strictly from files and the hub, their dates, and where their sentences end."""

from toolwise.documents.read import corpus_digest, read_documents
from toolwise.documents.sources import read_sources, source

__all__ = ["corpus_digest", "read_documents", "read_sources", "source"]
