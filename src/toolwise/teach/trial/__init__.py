"""A dry run before a long one: the pipeline over the first passages of a few documents, nothing written.

    trial = try_tools(corpus, model, settings)      then to_json(trial), render_trial(trial)

`run` does it, `values` is what comes out, `hints` says what to do next, `terminal` shows it.
"""

from toolwise.teach.trial.run import to_json, try_tools
from toolwise.teach.trial.terminal import render_trial
from toolwise.teach.trial.values import Trial

__all__ = ["Trial", "render_trial", "to_json", "try_tools"]
