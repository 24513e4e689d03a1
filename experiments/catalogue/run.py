"""How well a catalogue finds the tools that a question needs, and what it saves of the prompt. Prints Markdown.

    python run.py --data .../bfcl_eval [--encoder FOLDER] [--live] [--model smollm2-135m]

All functions of BFCL's simple, multiple and parallel sets are one catalogue, whatever their language; of two with one
name the first is taken. A question is looked up as the user's messages of it. Recall is the share of the functions of
its right answer that are among the first k; a question with several right functions counts each of them.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, median

from toolwise.core.chat import ChatRequest, Role, ToolSpec
from toolwise.evals.bfcl.data import CATEGORIES, Example, read
from toolwise.models.encoder import load_encoder
from toolwise.models.hub import local_folder
from toolwise.models.load import load_tokenizer
from toolwise.notation.chat.smollm import SMOLLM2
from toolwise.notation.wire.names import WireNames
from toolwise.tools.catalogue import FIND, Catalogue

KS = (1, 3, 5, 8, 10, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder bfcl_eval of BFCL's package")
    parser.add_argument("--encoder", help="a sentence encoder, to be measured beside plain BM25")
    parser.add_argument("--live", action="store_true", help="the live sets as well")
    parser.add_argument("--model", default="smollm2-135m", help="whose tokenizer counts")
    options = parser.parse_args()
    examples = [
        example
        for category in CATEGORIES
        if "relevance" not in category and (options.live or not category.startswith("live"))
        for example in read(options.data / "data", category)
    ]
    tools: dict[str, ToolSpec] = {}
    for example in examples:
        for spec in example.tools:
            tools.setdefault(spec.name, spec)
    say(f"{len(tools)} tools, {len(examples)} questions\n")
    say(f"| way | {' | '.join(f'recall at {k}' for k in KS)} | all of them at 10 | ms a question |")
    say(f"|{' --- |' * (len(KS) + 3)}")
    plain = Catalogue([*tools.values()])
    names = Catalogue([replace(spec, description="", parameters={}) for spec in tools.values()])
    no_parameters = Catalogue([replace(spec, parameters={}) for spec in tools.values()])
    for label, catalogue in (("names alone", names), ("names and descriptions", no_parameters), ("**BM25**", plain)):
        say(line(label, catalogue, examples))
    if options.encoder:
        encoder = load_encoder(options.encoder)
        began = time.process_time()
        joined = Catalogue([*tools.values()], encoder)
        took = time.process_time() - began
        say(line(f"BM25 and {Path(options.encoder).name} ({took:.0f} s to read the tools)", joined, examples))
    say("")
    tokens(plain, examples, options.model)


def line(label: str, catalogue: Catalogue, examples: Sequence[Example]) -> str:
    recalls: dict[int, list[float]] = {k: [] for k in KS}
    whole, began = [], time.process_time()
    for example in examples:
        wanted = {name for answer in example.answers or () for name in answer}
        found = [spec.name for spec in catalogue.choose(question(example), max(KS))]
        for k in KS:
            recalls[k].append(len(wanted & set(found[:k])) / len(wanted))
        whole.append(wanted <= set(found[:10]))
    each = (time.process_time() - began) / len(examples) * 1_000
    shares = [f"{mean(recalls[k]):.1%} ({spread(recalls[k])})" for k in KS]
    return f"| {label} | {' | '.join(shares)} | {mean(whole):.1%} | {each:.1f} |"


def spread(values: Sequence[float]) -> str:
    """The middle 95 % of the means of samples drawn with repetition."""
    draw = random.Random(0)  # noqa: S311 - not for secrets
    means = sorted(mean(draw.choices(values, k=len(values))) for _ in range(500))
    return f"{means[12]:.1%} to {means[-13]:.1%}"


def question(example: Example) -> str:
    return " ".join(said.text for said in example.messages if said.role is Role.USER)


def tokens(catalogue: Catalogue, examples: Sequence[Example], model: str) -> None:
    """Tokens of the whole prompt as the model reads it, of a sample of the questions."""
    tokenizer = load_tokenizer(local_folder(model))
    sample = random.Random(0).sample(list(examples), 100)  # noqa: S311 - not for secrets
    finder = catalogue.finder(8)
    find = ToolSpec(FIND, finder.description, finder.parameters)

    def size(example: Example, tools: Sequence[ToolSpec]) -> int:
        request = WireNames([tool.name for tool in tools]).sent(ChatRequest(example.messages, tools=tuple(tools)))
        return len(SMOLLM2.render(request, tokenizer, tokenizer.chat_template))

    everything = size(sample[0], [*catalogue.tools.values()])
    say(f"| tools shown | tokens of the prompt, median (most) | saved of {everything:,} |")
    say("| --- | --- | --- |")
    say(f"| none | {told([size(one, []) for one in sample], everything)}")
    for most in (3, 5, 8, 10, 20):
        sizes = [size(one, [find, *catalogue.choose(question(one), most)]) for one in sample]
        say(f"| `find_tools` and {most} | {told(sizes, everything)}")
    say(f"| all {len(catalogue.tools)} | {everything:,} | |")


def told(sizes: Sequence[int], everything: int) -> str:
    return f"{median(sizes):,.0f} ({max(sizes):,}) | {1 - median(sizes) / everything:.1%} |"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
