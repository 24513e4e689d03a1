"""What every page of a report is put into: it loads nothing and runs nothing; text, inline style, inline drawings.

Every piece of text goes through `text`: made visible, then escaped. The page's own policy forbids scripts, requests and
frames besides, should a piece ever be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files

from toolwise.teach.report.words import visible

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(title: str, parts: Iterable[str], style: str = "") -> str:
    """The whole page. `parts` are its elements, `style` is what it needs beyond the style of all reports."""
    common = files("toolwise.teach.report").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{text(title, 120)}</title>\n<style>\n{common}{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def text(said: str, chars: int | None = None) -> str:
    """At most `chars` characters of what is said, visible and escaped."""
    return escape(visible(said, chars))


def table(titles: Iterable[str], rows: Iterable[str], kind: str = "") -> str:
    """Rows that are elements, under titles that are ours or went through `text`."""
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = "".join(rows)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def number(cell: str) -> str:
    """A cell that leans to the right."""
    return f'<td class="number">{cell}</td>'
