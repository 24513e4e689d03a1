"""Strict decoding on public schemas: what can be masked, whether every call fits, and what it costs.

python run.py coverage --bfcl DATA --bench DATA --work FOLDER    every schema compiled, known instances tried
python run.py calls    --bfcl DATA --bench DATA --work FOLDER    a thousand calls sampled at temperature 1
python run.py speed    --bfcl DATA --work FOLDER                 beside plain decoding
python run.py report   --work FOLDER                             the figures as Markdown
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import jsonschema_rs
import typer
from schemas import Item, bench, bfcl, lot

from toolwise.core import jsonio
from toolwise.core.chat import ChatRequest, Message, Role, StopReason, ToolChoice, ToolSpec, gathered
from toolwise.core.errors import ToolwiseError
from toolwise.core.schema import Validator
from toolwise.decode.local import ChatSettings, LocalChat
from toolwise.models.load import describe_model, load_model
from toolwise.models.masks import Masks, Matcher
from toolwise.notation.chat.detect import named
from toolwise.notation.grammar import Grammar, json_grammar
from toolwise.notation.segments import Ids

Bfcl = Annotated[Path, typer.Option(help="bfcl_eval/data of the package bfcl-eval.")]
Bench = Annotated[Path, typer.Option(help="maskbench/data of guidance-ai/jsonschemabench.")]
Work = Annotated[Path, typer.Option(help="Where results are kept; what is there is not done again.")]
MODEL = "smollm2-135m"
app = typer.Typer(add_completion=False, no_args_is_help=True)


class Rows:
    """A file of JSON lines that a killed run goes on with."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        lines = text.splitlines() if text.endswith("\n") or not text else text.splitlines()[:-1]
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        self._file, self._lock = file, threading.Lock()

    def add(self, row: dict[str, Any]) -> None:
        with self._lock, self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            self.rows.append(row)


# What can be masked


@app.command()
def coverage(
    bfcl_data: Annotated[Path, typer.Option("--bfcl")],
    bench_data: Annotated[Path, typer.Option("--bench")],
    work: Work,
    schemas: int = 1_000,
) -> None:
    """So many tools of BFCL, and as many schemas of the benchmark, by lot."""
    rows = Rows(work / "coverage.jsonl")
    done = {(row["source"], row["id"]) for row in rows.rows}
    tokenizer = describe_model(MODEL)[0]
    masks = Masks(tokenizer)
    for item in [*lot(bfcl(bfcl_data), 0)[:schemas], *lot(bench(bench_data), 0)[:schemas]]:
        if (item.source, item.id) not in done:
            rows.add({"source": item.source, "id": item.id, **_covered(item, masks, tokenizer.encode)})


def _covered(item: Item, masks: Masks, encode: Callable[[str], Ids]) -> dict[str, Any]:
    started = time.thread_time()
    try:
        grammar = json_grammar(item.schema)
        read = time.thread_time()
        matcher = masks.matcher(grammar)
        compiled = time.thread_time()
        matcher.forced()
        if not matcher.ended:
            matcher.mask()
        first = time.thread_time()
    except ToolwiseError as refused:
        return {"refused": str(refused), "code": refused.code}
    lost = sorted({f"{d.keyword}" for d in matcher.downgrades})
    tried = Counter(_instance(masks.matcher(grammar), encode, *instance) for instance in item.instances)
    costs = {"read_ms": read - started, "compile_ms": compiled - read, "first_mask_ms": first - compiled}
    return {"lost": lost, "instances": tried, **{name: round(1e3 * cost, 3) for name, cost in costs.items()}}


def _instance(matcher: Matcher, encode: Callable[[str], Ids], valid: bool, value: Any) -> str:
    """What becomes of an instance whose validity is known, written in its own order."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    taken = matcher.read(encode(text)) and matcher.complete
    return f"{'valid' if valid else 'invalid'}, {'taken' if taken else 'not taken'}"


# Whether every call fits


@dataclass(frozen=True)
class Terse:
    """A dialect that does not show the tools: the prompt is the question alone, so a call fits by its mask or not."""

    dialect: Any

    def render(self, request: ChatRequest, tokenizer: Any, template: str | None) -> Ids:
        return self.dialect.render(replace(request, tools=()), tokenizer, template)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dialect, name)


@dataclass
class Counted:
    """A matcher that counts."""

    matcher: Matcher
    counts: Counter[str] = field(default_factory=Counter)
    mask_seconds: list[float] = field(default_factory=list)

    def masked(self, logits: Any) -> Any:
        started = time.thread_time()
        held = self.matcher.masked(logits)
        self.mask_seconds.append(time.thread_time() - started)
        self.counts["sampled"] += 1
        return held

    def forced(self) -> tuple[int, ...]:
        ids = self.matcher.forced()
        self.counts["forced"] += len(ids)
        return ids

    def __getattr__(self, name: str) -> Any:
        return getattr(self.matcher, name)


class Counting:
    """Masks whose matchers count; the last one of each thread is kept."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self.last = threading.local()

    def matcher(self, grammar: Grammar) -> Counted:
        self.last.matcher = Counted(self._masks.matcher(grammar))
        return self.last.matcher


@app.command()
def calls(
    bfcl_data: Annotated[Path, typer.Option("--bfcl")],
    bench_data: Annotated[Path, typer.Option("--bench")],
    work: Work,
    wanted: int = 1_000,
    threads: int = 16,
    max_tokens: int = 160,
) -> None:
    """So many finished calls: of 120 functions of BFCL and 220 schemas of the benchmark, a forced choice each."""
    rows = Rows(work / "calls.jsonl")
    done = {(row["source"], row["id"], row["seed"]) for row in rows.rows}
    model = load_model(MODEL, threads=1)
    counting, pool = Counting(Masks(model.tokenizer)), model.pool()
    chat = LocalChat(
        model,
        Terse(named("smollm2")),
        template=model.tokenizer.chat_template,
        masks=counting,  # type: ignore[arg-type]
        open_session=pool.session,
        settings=ChatSettings(temperature=1.0, max_tokens=max_tokens),
    )
    items = [*_usable(lot(bfcl(bfcl_data), 1), 120, model), *_usable(lot(bench(bench_data), 1), 220, model)]
    jobs = [(item, seed) for seed in range(12) for item in items if (item.source, item.id, seed) not in done]
    finished = sum(row["stop"] == "calls" for row in rows.rows)

    def work_on(job: tuple[Item, int]) -> None:
        nonlocal finished
        if finished < wanted:
            row = _sampled(chat, counting, *job)
            rows.add(row)
            finished += row["stop"] == "calls"

    with ThreadPoolExecutor(threads) as threaded:
        list(threaded.map(work_on, jobs))


def _usable(items: list[Item], count: int, model: Any) -> Iterator[Item]:
    """Schemas of an object that our validator takes, of which a call is not too long for a small model."""
    for item in items:
        if count and len(json.dumps(item.schema)) <= 1_500 and item.schema.get("properties"):
            try:
                Validator({"type": "object", **item.schema})
            except ToolwiseError:
                continue
            count -= 1
            yield item


def _sampled(chat: LocalChat, counting: Counting, item: Item, seed: int) -> dict[str, Any]:
    tool = ToolSpec(item.name, item.description, {"type": "object", **item.schema}, strict=True)
    request = ChatRequest(
        messages=(Message(Role.USER, item.question),),
        tools=(tool,),
        choice=ToolChoice("required"),
        parallel=False,
        seed=seed,
    )
    row: dict[str, Any] = {"source": item.source, "id": item.id, "seed": seed}
    try:
        reply = gathered(chat.reply(request))
    except ToolwiseError as error:
        return {**row, "stop": "error", "error": str(error)}
    counted = counting.last.matcher
    row |= {"stop": reply.stop.value, "lost": sorted({str(d) for d in counted.downgrades}), **counted.counts}
    row["mask_us"] = [round(1e6 * seconds) for seconds in counted.mask_seconds]
    if reply.stop is StopReason.CALLS:
        (call,) = reply.calls
        row |= {"arguments": call.arguments, "problem": _problem(tool, call.name, call.arguments)}
    return row


def _problem(tool: ToolSpec, name: str, arguments: str) -> str:
    """Why a call does not fit, by our validator and by jsonschema-rs itself, or `""`."""
    if name != tool.name:
        return "another name"
    try:
        value = jsonio.loads(arguments)
        Validator(tool.parameters).validate(value)
    except ToolwiseError as error:
        return str(error)
    return "" if jsonschema_rs.validator_for(dict(tool.parameters)).is_valid(value) else "jsonschema-rs says no"


# What it costs


@app.command()
def speed(bfcl_data: Annotated[Path, typer.Option("--bfcl")], work: Work, questions: int = 20) -> None:
    """Calls one by one, greedily, strict and free: seconds a token, to the first mask, and to the first token."""
    rows = Rows(work / "speed.jsonl")
    model = load_model(MODEL, threads=1)
    masks = Masks(model.tokenizer)
    for item in list(_usable(lot(bfcl(bfcl_data), 2), questions, model))[len(rows.rows) // 2 :]:
        for strict in (True, False):
            rows.add({"id": item.id, "strict": strict, **_timed(model, masks, item, strict)})


def _timed(model: Any, masks: Masks, item: Item, strict: bool) -> dict[str, Any]:
    counting = Counting(masks)
    chat = LocalChat(
        model,
        named("smollm2"),
        template=model.tokenizer.chat_template,
        masks=counting if strict else None,  # type: ignore[arg-type]
        settings=ChatSettings(max_tokens=64, strict="always" if strict else "never"),
    )
    tool = ToolSpec(item.name, item.description, item.schema)
    choice = ToolChoice("required") if strict else ToolChoice()
    request = ChatRequest((Message(Role.USER, item.question),), tools=(tool,), choice=choice, parallel=False)
    forwards, started = model.usage.forwards, time.process_time()
    deltas, to_first = [], 0.0
    for delta in chat.reply(request):
        to_first = to_first or time.process_time() - started
        deltas.append(delta)
    spent, reply = time.process_time() - started, gathered(deltas)
    counts = counting.last.matcher.counts if strict else Counter[str]()
    return {
        "tokens": reply.usage.completion,
        "forwards": model.usage.forwards - forwards,
        "first_s": to_first,
        "seconds": spent,
        "forced": counts["forced"],
        "mask_us": [round(1e6 * s) for s in counting.last.matcher.mask_seconds] if strict else [],
    }


# The figures


@app.command()
def report(work: Work) -> None:
    for part in (_coverage_report, _calls_report, _speed_report):
        print("\n".join(part(work)), end="\n\n")  # noqa: T201


def _coverage_report(work: Path) -> Iterator[str]:
    rows = Rows(work / "coverage.jsonl").rows
    yield "| schemas | all | masked whole | but for open names | some words not masked | any object | refused |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for source in ("BFCL", "bench"):
        own = [row for row in rows if row["source"] == source]
        lost = [set(row["lost"]) for row in own if "lost" in row]
        whole, names = sum(not words for words in lost), sum(words == {"additionalProperties"} for words in lost)
        opened = sum("schema" in words for words in lost)
        some, refused = len(lost) - whole - names - opened, sum("refused" in row for row in own)
        yield f"| {source} | {len(own)} | {whole} | {names} | {some} | {opened} | {refused} |"
    yield ""
    words = Counter(word for row in rows for word in row.get("lost", ()))
    yield "Words that are not masked, in how many schemas: " + ", ".join(f"`{w}` {n}" for w, n in words.most_common())
    reasons = Counter(row["refused"] for row in rows if "refused" in row)
    yield "Refused: " + "; ".join(f"{reason} ({n})" for reason, n in reasons.most_common(12))
    tried = Counter[str]()
    for row in rows:
        sound = not set(row.get("lost", ())) - {"additionalProperties"}
        for what, count in row.get("instances", {}).items():
            tried[f"{what}, {'masked whole' if sound else 'with words lost'}"] += count
    yield "Known instances: " + "; ".join(f"{what}: {count}" for what, count in sorted(tried.items()))
    for name in ("read_ms", "compile_ms", "first_mask_ms"):
        yield f"{name}: {_spread([row[name] for row in rows if name in row])}"


def _calls_report(work: Path) -> Iterator[str]:
    rows = Rows(work / "calls.jsonl").rows
    yield "| calls | schemas | finished | fit | do not fit, a word was lost | do not fit | cut off | error |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for source in ("BFCL", "bench"):
        own = [row for row in rows if row["source"] == source]
        ended = [row for row in own if row["stop"] == "calls"]
        bad = [row for row in ended if row["problem"]]
        excused = sum(bool(row["lost"]) for row in bad)
        stops, schemas = Counter(row["stop"] for row in own), len({row["id"] for row in ended})
        yield (
            f"| {source} | {schemas} | {len(ended)} | {len(ended) - len(bad)} | {excused} | {len(bad) - excused} "
            f"| {stops['length']} | {stops['error']} |"
        )
    yield ""
    for row in rows:
        if row.get("problem"):
            yield f"- {row['id']}: {row['problem']} ({'; '.join(row['lost']) or 'nothing lost'})"
    forced, sampled = (sum(row.get(name, 0) for row in rows) for name in ("forced", "sampled"))
    yield f"Forced: {forced} of {forced + sampled} tokens ({forced / max(1, forced + sampled):.0%})"
    yield f"A mask, us: {_spread([us for row in rows for us in row.get('mask_us', ())])}"


def _speed_report(work: Path) -> Iterator[str]:
    rows = Rows(work / "speed.jsonl").rows
    for strict in (True, False):
        own = [row for row in rows if row["strict"] is strict]
        tokens, forwards, seconds = (sum(row[name] for row in own) for name in ("tokens", "forwards", "seconds"))
        if own:
            yield (
                f"{'strict' if strict else 'free'}: {len(own)} questions, {tokens} tokens, {forwards} forward passes, "
                f"{1e3 * seconds / tokens:.1f} ms a token, first piece after {_spread([r['first_s'] for r in own])} s"
            )
    yield f"A mask, us: {_spread([us for row in rows for us in row['mask_us']])}"


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return "-"
    parts = statistics.quantiles(values, n=100)
    return f"median {statistics.median(values):.4g}, 99 % {parts[98]:.4g}, most {max(values):.4g}"


if __name__ == "__main__":
    app()
