"""The run folder on disk: shards written whole, a journal of what is done, and a manifest written last.

    with Store.open(folder, settings) as store: ...     a run that writes
    Store.load(folder)                                  a finished run

`store` is the folder, `shards` its files, `rows` the Parquet in them, `journal` what is done.
"""

from toolwise.teach.store.shards import Kind, ShardInfo, put
from toolwise.teach.store.store import Store

__all__ = ["Kind", "ShardInfo", "Store", "put"]
