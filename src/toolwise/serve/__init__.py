"""HTTP: the doors through which people and programs reach what runs here."""
