"""The end of a run: thresholds from all candidates, then shard by shard what is kept and its augmented text.

`keep_again` does the same once more into another folder, for other thresholds: nothing is proposed, executed or scored
again.

Not covered: a threshold below the run's own floor. What could not reach that was dropped before it was scored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from toolwise.core.durable import replace_file
from toolwise.core.errors import BadInput
from toolwise.core.jsonio import fingerprint
from toolwise.teach.begun import prices_of, settings_of
from toolwise.teach.config import Settings
from toolwise.teach.keep import keep, thresholds
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.store import Kind, Store, shards
from toolwise.teach.weave import augment

#: Called as shards finish: (stage, done, total).
Progress = Callable[[str, int, int], None]
_MADE: tuple[Kind, ...] = ("passages", "scored")


def finish(
    store: Store,
    settings: Settings,
    price: Mapping[str, float],
    progress: Progress = lambda stage, done, total: None,
) -> Mapping[str, Any]:
    """Keep and weave what was scored, and write the manifest. Returns its report."""
    wanted = {name: own.tau_f for name, own in settings.tools.items()}
    found = thresholds(wanted, store.read("scored", Candidate))
    passages, scored = store.done("passages"), store.done("scored")
    counts: Counter[str] = Counter()
    standing = 0
    for done, (index, info) in enumerate(sorted(scored.items()), 1):
        rows = keep(list(shards.load(store.folder, info, Candidate)), found, price)
        counts.update(f"{row.tool}.{row.reason or 'kept'}" for row in rows)
        standing += sum(row.stands_on and row.reason is None for row in rows)
        store.write_shard("candidates", index, rows)
        store.write_shard("augmented", index, augment(shards.load(store.folder, passages[index], Passage), rows))
        progress("weave", done, len(scored))
    report = {
        "passages": sum(info.rows for info in passages.values()),
        "thresholds": {name: value if math.isfinite(value) else None for name, value in found.items()},
        "prices": {name: value for name, value in price.items() if value},
        "counts": dict(sorted(counts.items())),
        "kept_on_earlier_calls": standing,
    }
    store.finish(report)
    return report


def keep_again(run: Path, out: Path, tau: Mapping[str, float], progress: Progress = lambda *_: None) -> dict[str, Any]:
    """What the calls scored in `run` come to at other thresholds, by tool, as a finished run in `out`.

    Raises BadInput for a tool that the run did not try, a threshold below what its rows know, and a run in which
    nothing is scored yet; SettingsDiffer where `out` is of another run, of other thresholds, or of fewer shards.
    """
    source = Store.load(run, partial=True)
    settings, scored = settings_of(source), dict(sorted(source.done("scored").items()))
    if not scored:
        raise BadInput(f"Nothing is scored in {str(run)!r} yet; annotate first.")
    settings = settings.model_copy(update={"tools": {**settings.tools, **_changed(settings, tau)}})
    described = {
        **source.settings,
        "settings": {**source.settings["settings"], "tools": _described(source.settings["settings"]["tools"], tau)},
        "kept_from": {"run": source.fingerprint, "scored": fingerprint([info.sha256 for info in scored.values()])},
    }
    with Store.open(out, described) as store:
        if store.manifest is None:
            for kind in _MADE:
                _copy(source, store, kind, scored)
            finish(store, settings, prices_of(source, settings), progress)
        assert store.manifest is not None
        return dict(store.manifest["report"])


def _changed(settings: Settings, tau: Mapping[str, float]) -> Mapping[str, Any]:
    for name, value in tau.items():
        own = settings.tools.get(name)
        if own is None:
            raise BadInput(f"This run did not try {name!r}; it tried {', '.join(settings.tools)}.")
        if value < own.floor and (settings.early_bounds or own.checks):
            raise BadInput(
                f"A threshold of {value:g} for {name} cannot be had from this run, which dropped what could not reach "
                f"{own.floor:g} before it was scored; annotate again, or take {own.floor:g} or more."
            )
    return {name: settings.tools[name].model_copy(update={"tau_f": value}) for name, value in tau.items()}


def _described(tools: Mapping[str, Mapping[str, Any]], tau: Mapping[str, float]) -> Mapping[str, Any]:
    return {name: {**own, **({"tau_f": tau[name]} if name in tau else {})} for name, own in tools.items()}


def _copy(source: Store, store: Store, kind: Kind, indices: Mapping[int, Any]) -> None:
    found, done = source.done(kind), store.done(kind)
    for index in indices:
        if index not in done:
            replace_file(store.folder / found[index].name, shards.check(source.folder, found[index]))
            store.commit(found[index])
