"""The arms of one command: each model, asked in one or several ways, under a name of its own.

The paper's controls are arms like any other. A base model, and one that was taught the plain texts, are asked with
calls disabled, since nobody taught them any; of a model that was taught calls, `disabled`, each `k` and each start
threshold is an arm.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolwise.core.errors import BadInput
from toolwise.decode.engine import DecodeSettings
from toolwise.evals.run import Way
from toolwise.models.about import About, about_model
from toolwise.models.chosen import chosen_threshold
from toolwise.models.load import describe_model
from toolwise.notation.segments import Tokenizer

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,63})=(.+)")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_USUAL = DecodeSettings().start_top_k


@dataclass(frozen=True, slots=True)
class Planned:
    """An arm before it is run; `label` is its folder's name."""

    label: str
    model: str
    fingerprint: str
    about: About
    tokenizer: Tokenizer
    way: Way


def plan(
    models: Sequence[str],
    way: Way,
    top_k: Sequence[int],
    calls: bool | None = None,
    thresholds: Sequence[float | None] = (),
) -> list[Planned]:
    """The arms in the order of the models. A model is a name, a folder or a hub id, with `NAME=` before it or not.

    `top_k` 0 is a way of saying disabled. Each of the `thresholds` is an arm too; None is the one that the model's
    folder carries. `calls`: whether models may call at all; None: those that were taught it. Raises BadInput for two
    models of one name, or a model without a threshold that is to have one, and ModelUnavailable.
    """
    planned = []
    for label, model in _labelled(models):
        tokenizer, fingerprint = describe_model(model)
        about = about_model(model)
        taught = about.taught == "calls"
        may = taught if calls is None else calls
        for k in top_k if may else (0,):
            decode = replace(way.decode, enabled=k > 0, start_top_k=k or _USUAL)
            end = "" if k == _USUAL or not (taught or k) else f"-k{k}" if k else "-disabled"
            planned.append(Planned(label + end, model, fingerprint, about, tokenizer, replace(way, decode=decode)))
        for given in thresholds if may else ():
            threshold = _chosen(model) if given is None else given
            end = "-chosen" if given is None else f"-t{given:g}"
            decode = replace(way.decode, start_threshold=threshold)
            planned.append(Planned(label + end, model, fingerprint, about, tokenizer, replace(way, decode=decode)))
    return planned


def _chosen(model: str) -> float:
    threshold = chosen_threshold(model)
    if threshold is None:
        raise BadInput(f"{model!r} carries no threshold; choose one with: toolwise eval calibrate TASK --store.")
    return threshold


def _labelled(models: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for given in dict.fromkeys(models):
        match = None if Path(given).exists() else _NAMED.fullmatch(given)
        label, model = match.groups() if match else (_OTHER.sub("-", Path(given).resolve().name).strip("-."), given)
        found.append((label or "model", model))
    twice = [label for label, count in Counter(label for label, _ in found).items() if count > 1]
    if twice:
        raise BadInput(f"Two models would be called {twice[0]!r}; name them, as in --model one={found[0][1]}.")
    return found
