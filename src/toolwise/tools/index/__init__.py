"""An index over the user's texts: built from files or the hub, searched by BM25, memory-mapped.

`build` makes it: `passages` cuts documents, `words` reads them, `shard` counts, `matrix` joins, `manifest` says what is
whole. `index` searches it, `texts` gives the passages, `snippet` what of them a model sees.
"""

from toolwise.tools.index.build import build_index
from toolwise.tools.index.index import Hit, Index
from toolwise.tools.index.manifest import IndexSettings, Manifest

__all__ = ["Hit", "Index", "IndexSettings", "Manifest", "build_index"]
