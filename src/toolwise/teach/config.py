"""The settings of an annotation run, typed, with the paper's numbers as defaults; read from TOML.

Two presets: `paper` is the paper's method as it stands; `small` is what a model of some hundred million parameters
needs (docs/experiments.md has the figures): fewer samples, an enumerating proposer beside the model's own, a threshold
that is measured instead of given, and weights that begin behind the space before a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.core.toml import read_toml
from toolwise.models.toolbox import Option, names_of


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Control(_Frozen):
    """A measured threshold: the smallest one, from `floor` on, that at most `alpha` of the control calls pass.

    A control call is a candidate with a result taken from another candidate of the same tool.
    """

    alpha: Annotated[float, Field(gt=0, lt=1)]  # share of the control calls that may pass
    floor: Annotated[float, Field(gt=0)] = 0.1  # nats; no threshold below it comes out


class ToolSettings(_Frozen):
    """How calls of one tool are found. The names are the paper's (section 4.1 and appendix A)."""

    tau_s: Annotated[float, Field(ge=0, lt=1)] = 0.05  # a position's marker must be likelier than this
    k: Annotated[int, Field(ge=1)] = 5  # positions of a passage at most, the likeliest
    m: Annotated[int, Field(ge=1)] = 5  # calls sampled at each position
    named: bool = False  # the tool's name is written for the model, which samples the arguments only
    prompted: bool = True  # the model is shown the tool's prompt; one that was tuned on calls needs none
    spread: Annotated[int, Field(ge=0)] = 0  # positions, the likeliest, at which calls sampled elsewhere are tried too
    tau_f: Annotated[float, Field(gt=0)] | Control = 1.0  # nats that a result must gain: a number, or a Control
    proposers: tuple[Literal["lm", "lm_positions", "enumerate", "foreign"], ...] = ("lm",)  # whoever names calls to try
    rule: Literal["always", "calculator", "calendar", "foreign"] = "always"  # which passages are tried
    wording: Literal["notation", "plain"] = "notation"  # how z says a call while scoring: as written, or in words
    temperature: Annotated[float, Field(ge=0)] | None = None  # of its sampled calls; default: the run's
    look_ahead_guard: bool = False  # drop calls that use what the text names only later, or give back an argument
    copied_words: Annotated[int, Field(ge=0)] = 0  # drop a result with so many of the next words in a row; 0: none
    checks: tuple[Literal["repeat", "second_source", "not_older"], ...] = ()  # what a result must stand up to besides
    second_source: str = ""  # the tool that is asked the same, for the check second_source
    cost: Annotated[float, Field(ge=0)] | None = None  # of one call; default: what the tool declares

    @property
    def floor(self) -> float:
        """No threshold below this can come out, so whatever cannot reach it may be dropped early."""
        return self.tau_f.floor if isinstance(self.tau_f, Control) else self.tau_f


class PromptSettings(_Frozen):
    """What a model is shown so that it proposes calls of one tool: `toolwise tools draft` writes such a table."""

    instruction: str  # what to do and how a call is written, before the examples
    examples: tuple[str, ...]  # texts with calls in them, as a model should write them
    call_wording: str = "{input}"  # for wording = "plain": what a call says in words
    result_wording: str = "{input} = {result}"  # and what its result says


class Settings(_Frozen):
    """One run. `separator` stands between z and the text while scoring (the paper does not say what does).

    Calls at one place that have the same result gain about the same, so that the largest gain says little of which is
    meant; `same_result = "likelihood"` takes the one that the model would most likely write there itself.

    `weigh_spaces` False begins the weights behind a lone space token, for tokenizers that make one before a number.
    """

    tools: dict[str, ToolSettings]  # by name
    sources: tuple[str, ...] = ()  # which tools, unless `--tools` says: names of the package's, files (`mine.py`)
    options: dict[str, dict[str, Option]] = {}  # of each source, such as Search's index; `--option` goes over them
    prompts: dict[str, PromptSettings] = {}  # of each tool, in place of the package's or the drafted one
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0  # of sampling, of the calculator rule's lot and of the controls
    temperature: Annotated[float, Field(ge=0)] = 1.0  # of the sampled calls; 0 is greedy. The paper does not say
    call_tokens: Annotated[int, Field(ge=1, le=LIMITS.sampled_tokens)] = 24  # a call not closed by then is dropped
    strict_calls: bool = False  # sample only calls that can be read and fit the tool's schema (extra strict)
    passage_tokens: Annotated[int, Field(ge=8)] = LIMITS.passage_tokens  # documents are cut into passages so long
    shard_passages: Annotated[int, Field(ge=1)] = 16  # what a worker does in one go, and what a kill may lose
    separator: str = "\n"  # between z and the text
    cost_weight: Annotated[float, Field(ge=0)] = 0.0  # nats that a call must gain more for each unit of its tool's cost
    scoring: Literal["front", "inline"] = "front"  # where z stands; inline is for a model that was tuned on calls
    same_result: Literal["gain", "likelihood"] = "gain"  # which of several calls at one place with one result stays
    weigh_spaces: bool = True  # whether a lone space in front of a number carries weight
    early_bounds: bool = True  # drop at once what no result could lift to the smallest threshold


_MEASURED = Control(alpha=0.02, floor=0.05)
#: For tools that a preset says nothing of.
OTHER = {
    "paper": ToolSettings(),
    "small": ToolSettings(tau_s=0.0, k=6, m=3, named=True, spread=20, tau_f=_MEASURED, look_ahead_guard=True),
}
_ASKED = OTHER["small"].model_copy(update={"m": 2, "spread": 0, "temperature": 0.7, "copied_words": 5})
_PAPER = {
    "Calculator": ToolSettings(tau_s=0.0, k=20, m=10, tau_f=0.5, rule="calculator"),
    "Calendar": ToolSettings(rule="calendar"),
    "Search": ToolSettings(),
    "QA": ToolSettings(),
    "Translate": ToolSettings(tau_s=0.0, k=20, m=10, tau_f=0.5, rule="foreign", look_ahead_guard=True),
}
_SMALL = {
    "Calculator": ToolSettings(
        tau_s=0.0,
        k=8,
        m=4,
        tau_f=_MEASURED,
        proposers=("lm", "enumerate"),
        rule="calculator",
        look_ahead_guard=True,
    ),
    "Calendar": ToolSettings(
        tau_s=0.0,
        k=10,
        tau_f=_MEASURED,
        proposers=("lm_positions",),
        rule="calendar",
        look_ahead_guard=True,
    ),
    "Search": _ASKED,
    "QA": _ASKED,
    "Translate": _ASKED.model_copy(update={"rule": "foreign", "proposers": ("lm", "foreign")}),
}
PRESETS: dict[str, Settings] = {"paper": Settings(tools=_PAPER), "small": Settings(tools=_SMALL, weigh_spaces=False)}
#: Those that need nothing but the package.
DEFAULT_TOOLS = ("Calculator", "Calendar")


def load_settings(
    preset: str = "small",
    tools: Iterable[str] = (),
    file: Path | None = None,
    options: Mapping[str, Mapping[str, Option]] | None = None,
) -> Settings:
    """A preset, narrowed to `tools` (names, and files with tools), with what a TOML file says put over it.

    `options` go over those of the file. A tool that the preset does not know starts from the preset's values for any
    tool. Raises BadInput with the name of the field that does not fit, and for a tool that is not there.
    """
    if preset not in PRESETS:
        raise BadInput(f"Unknown preset {preset!r}; use one of {', '.join(PRESETS)}.")
    said = {} if file is None else read_toml(file)
    values = PRESETS[preset].model_dump()
    spoken = said.get("tools")
    strange = [name for name in spoken if name not in values["tools"]] if isinstance(spoken, dict) else []
    values["tools"] |= {name: OTHER[preset].model_dump() for name in strange}
    _put_over(values, said)
    _put_over(values["options"], {name: dict(given) for name, given in (options or {}).items()})
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        raise BadInput(_problem(error)) from error
    sources = tuple(dict.fromkeys(tools)) or settings.sources or DEFAULT_TOOLS
    names = names_of(sources, settings.options)
    unknown = [name for name in (*strange, *settings.prompts) if name not in (*names, *PRESETS[preset].tools)]
    if unknown:  # a misspelt name would pass unseen
        raise BadInput(f"There are settings for {unknown[0]!r}, but no such tool; there are {', '.join(names)}.")
    wanted = {name: settings.tools.get(name, OTHER[preset]) for name in names}
    return settings.model_copy(update={"tools": wanted, "sources": sources})


def _problem(error: ValidationError) -> str:
    """The first problem in words. Of the shapes that a value may have, the one that fits furthest is spoken of."""
    first = error.errors()[0]
    own = [one for one in error.errors() if one["loc"][: len(first["loc"]) - 1] == first["loc"][:-1]]
    deepest = max(own, key=lambda one: len(one["loc"]))
    where = ".".join(str(part) for part in deepest["loc"] if part not in ("constrained-float", Control.__name__))
    what = "there is no such setting" if deepest["type"] == "extra_forbidden" else deepest["msg"]
    return f"Setting {where}: {what}."


def _put_over(values: dict[str, Any], changes: dict[str, Any]) -> None:
    """Tables go into tables, value by value; whatever else is said takes the place of what was there."""
    for key, change in changes.items():
        if isinstance(change, dict) and isinstance(values.get(key), dict):
            _put_over(values[key], change)
        else:
            values[key] = change
