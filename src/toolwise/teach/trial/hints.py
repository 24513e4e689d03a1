"""What to do about a dry run that found little, in plain sentences, by the first stage at which nothing was left."""

from __future__ import annotations

from collections.abc import Iterator

from toolwise.core.jsonio import printable
from toolwise.notation.inline import find
from toolwise.notation.segments import Tokenizer
from toolwise.teach.config import Settings
from toolwise.teach.lessons import Lessons
from toolwise.teach.trial.values import ToolTrial


def hints(trial: ToolTrial, settings: Settings, taught: Lessons, tokenizer: Tokenizer) -> tuple[str, ...]:
    """The hints on one tool."""
    return tuple(_hints(trial, settings, taught, tokenizer))


def _hints(trial: ToolTrial, settings: Settings, taught: Lessons, tokenizer: Tokenizer) -> Iterator[str]:
    report, name = trial.report, trial.report.name
    counts = {reason.code: reason.count for reason in report.reasons}
    longest = max(_call_tokens(example, tokenizer) for example in taught.prompts[name].examples)
    if longest > settings.call_tokens:
        yield (
            f"A call of the examples takes {longest} tokens, and a sampled one is given up after "
            f"{settings.call_tokens}: set call_tokens = {longest + longest // 2}."
        )
    written = report.proposed - sum(counts.get(code, 0) for code in ("unclosed", "unparsable", "unknown_tool"))
    failed = sum(failure.count for failure in trial.failures)
    if not report.proposed:
        yield _nothing_proposed(name, counts, settings)
    elif not written:
        yield (
            f"The model wrote no call that reads as one of {name}. Give it more examples, nearer to your texts "
            f"(toolwise tools draft), let it write the arguments only ([tools.{name}] named = true), or take a larger "
            "model."
        )
    elif failed and not report.scored:
        first = trial.failures[0]
        yield (
            f"No call gave a result that could be scored; most often {first.code}: "
            f"{printable(first.cause or first.text, 200)}"
        )
        if first.code == "invalid_arguments":
            yield "The examples should show every argument that is required, with values of its type."
    elif counts.get("look_ahead", 0) > written / 2:
        yield (
            "Most calls use what the text names only later. In the examples, put each call behind all that its "
            "arguments say, and choose texts that name the result last."
        )
    elif not report.kept:
        yield from _no_help(trial)


def _nothing_proposed(name: str, counts: dict[str, int], settings: Settings) -> str:
    own = settings.tools[name]
    if counts.get("no_position"):
        return (
            f"No place was likely enough for a call of {name}: set [tools.{name}] tau_s below {own.tau_s:g}, or give "
            "examples that are nearer to your texts."
        )
    return f'The rule {own.rule!r} left out every passage: choose other texts, or set [tools.{name}] rule = "always".'


def _no_help(trial: ToolTrial) -> Iterator[str]:
    """Calls ran, and none is kept."""
    if not trial.report.scored:
        yield (
            "Results came back, and none could help enough: the words behind the calls are easy to predict already, or "
            "the results take too little off. Look at the losses above: `none` is all that there is to gain."
        )
    else:
        yield (
            "No result helped enough. See above whether calls stand right before the words that their results explain, "
            "and whether a result is written as the text writes it (80, not 80.0)."
        )
    if any(kept.calls for kept in trial.thresholds):
        lowest = next(kept for kept in reversed(trial.thresholds) if kept.calls)
        yield f"A threshold of {lowest.tau_f:g} would keep {lowest.calls}, and {lowest.controls} control calls pass it."


def _call_tokens(example: str, tokenizer: Tokenizer) -> int:
    return max((len(tokenizer.encode(f"{call.body}]")) for call in find(example)), default=0)
