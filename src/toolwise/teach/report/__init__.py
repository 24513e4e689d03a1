"""What an annotation run proposed, why calls were dropped, and what was kept.

    report = summarise(folder)      then to_json(report), render_terminal(report), render_html(report)

`summary` reads the folder, `tally` counts, `values` is what comes out; `terminal`, `page` and `plots` show it.
"""

from toolwise.teach.report.page import render_html
from toolwise.teach.report.summary import summarise, to_json
from toolwise.teach.report.terminal import render_terminal
from toolwise.teach.report.values import Report

__all__ = ["Report", "render_html", "render_terminal", "summarise", "to_json"]
