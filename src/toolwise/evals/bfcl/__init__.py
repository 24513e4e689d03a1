"""BFCL, the Berkeley Function-Calling Leaderboard (Patil et al. 2025): its data and its checker, over any chat model.

data      questions, functions as requests declare them, right answers
judge     an answer is right or it is not, and why
run       asked, judged and kept, one line each
report    a line a category
"""

from toolwise.evals.bfcl.data import CATEGORIES, Example, digests, sample
from toolwise.evals.bfcl.judge import Verdict, bfcl_checker, judged, package
from toolwise.evals.bfcl.report import Line, lines, table
from toolwise.evals.bfcl.run import Asking, run

__all__ = [
    "CATEGORIES",
    "Asking",
    "Example",
    "Line",
    "Verdict",
    "bfcl_checker",
    "digests",
    "judged",
    "lines",
    "package",
    "run",
    "sample",
    "table",
]
