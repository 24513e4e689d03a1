"""Texts of our own for the tests of search, and the index of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolwise.core.limits import LIMITS

#: Shards of four passages, so that a few texts fill several.
SMALL_SHARDS = replace(LIMITS, shard_passages=4)

TEXTS: list[dict[str, Any]] = [
    {
        "id": "oslo",
        "title": "Oslo",
        "text": "Oslo is the capital of Norway. It lies at the head of a fjord, between wooded hills.",
        "date": "2023-05-17",
        "url": "https://example.org/oslo",
    },
    {"id": "bergen", "title": "Bergen", "text": "Bergen is a rainy town. It was the capital of Norway before Oslo."},
    {"id": "vienna", "title": "Vienna", "text": "Vienna is the capital of Austria. The Danube runs through it."},
    {"id": "danube", "title": "Danube", "text": "The Danube is a river. It runs through ten countries to the sea."},
    {"id": "the-who", "title": "The Who", "text": "The Who is the band that the boys of the town listened to."},
    {"id": "beyonce", "title": "Beyoncé", "text": "Beyoncé is a singer. Her concerts fill the stadium."},
    {"id": "tokyo", "title": "東京", "text": "東京は日本の首都です。人口は多いです。"},
    {"id": "bread", "title": "Bread", "text": "Bake the bread for an hour. The crust is brown when the bread is done."},
    {"id": "untitled", "text": "A letter without a title tells of herring, of salt and of the sea."},
]


def write_lines(path: Path, rows: list[dict[str, Any]] = TEXTS) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the lock, which names a process."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.name != "lock")
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}
