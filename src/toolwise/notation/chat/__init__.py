"""How chat models write calls; one file a dialect."""
