"""What a run teaches: the tools of its settings, and for each the prompt that shows a model how to call it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.types import Effect, Tool
from toolwise.models.toolbox import ModelOf, toolbox
from toolwise.notation.inline import PLAIN, Notation
from toolwise.teach.checks import check_named
from toolwise.teach.config import Settings
from toolwise.teach.draft import ENOUGH, checked, draft, sketch
from toolwise.teach.prompts import PROMPTS, Prompt
from toolwise.tools.language import FastText
from toolwise.tools.registry import Registry, definition


@dataclass(frozen=True, slots=True)
class Lessons:
    """`described` is part of a run's fingerprint: definitions, what stands behind the tools, and all prompts."""

    registry: Registry
    prompts: Mapping[str, Prompt]
    described: Mapping[str, Any]


def lessons(settings: Settings, model: ModelOf | None = None, notation: Notation = PLAIN) -> Lessons:
    """The tools and prompts of a run.

    Raises BadInput for a tool that writes, that no prompt can be made for, or whose checks need what is not there.
    """
    box = toolbox(settings.sources, settings.options, model)
    for tool in box.registry.values():
        if tool.effect is Effect.WRITE:
            raise BadInput(
                f"{tool.name} may change the world, and while a model is taught nothing of that kind runs: declare it "
                "with @tool(effect=Effect.PURE) if it only computes, or Effect.READ if it only looks."
            )
    for name, own in settings.tools.items():
        for check in own.checks if name in box.registry else ():
            check_named(check, name, own, box.registry, notation)
    prompts = {name: _prompt(tool, settings, notation) for name, tool in box.registry.items()}
    described = {
        "tools": {name: definition(tool) for name, tool in box.registry.items()},
        "behind": {**box.identity, **_detector(settings)},
        "prompts": {name: prompt.described() for name, prompt in prompts.items()},
    }
    return Lessons(box.registry, prompts, described)


def _detector(settings: Settings) -> dict[str, str]:
    """What tells languages, where passages or calls are chosen by it."""
    asked = any(own.rule == "foreign" or "foreign" in own.proposers for own in settings.tools.values())
    return {"languages": FastText().identity} if asked else {}


def prompt_of(tool: Tool, sources: Collection[str], notation: Notation = PLAIN, *, unfinished: bool = False) -> Prompt:
    """The package's own prompt for a tool of the package, a drafted one for any other.

    `unfinished` takes one that a person has to finish, where a tool has too few examples; otherwise BadInput.
    """
    if tool.name in PROMPTS and tool.name in sources:
        return PROMPTS[tool.name]
    return sketch(tool, notation) if unfinished and len(tool.examples) < ENOUGH else draft(tool, notation)


def _prompt(tool: Tool, settings: Settings, notation: Notation) -> Prompt:
    own = settings.prompts.get(tool.name)
    if own is None:
        return prompt_of(tool, settings.sources, notation)
    said = Prompt(tool.name, own.instruction, own.examples, own.call_wording, own.result_wording)
    return checked(said, tool, notation)
