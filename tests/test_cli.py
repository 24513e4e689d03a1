"""The command line as a user meets it: every command on a tiny model, and whatever is wrong as one clear line.

Commands run in this process through `main`, as a user's do; a process of its own runs only where its end is the point.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from command_line import Outcome, Toolwise, invoke, refused
from tiny_models import model_folder
from toolwise.cli import app
from toolwise.core import jsonio

SETTINGS = """
shard_passages = 2
call_tokens = 6
[tools.Calculator]
k = 2
m = 1
tau_f = 1e-6
proposers = ["lm", "enumerate"]
[tools.Calendar]
k = 1
m = 1
tau_f = 1e-6
"""
TEXTS = [
    "Three hats cost 24 crowns, so one costs 24 / 3 = 8 crowns.",
    "She read 12 pages on 5 days, a total of 60 pages.",
    "Rows of 18 and columns of 24 make 432 places.",
]
GSM8K = [
    ("Tom has 3 hats and buys 4. How many?", "He has 3+4=<<3+4=7>>7 hats.\n#### 7"),
    ("Ann has 48 eggs and eats half.", "She has 48/2=<<48/2=24>>24 eggs.\n#### 24"),
]
FEW = ("--set", "steps=2", "--set", "batch=2", "--set", "length=64", "--set", "evaluate_every=1")


@dataclass(frozen=True)
class World:
    """What the commands are tried on."""

    folder: Path
    model: Path
    corpus: Path
    settings: Path
    gsm8k: Path
    run: Path
    unfinished: Path
    tuned: Path

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def annotating(world: World, out: object, corpus: object = None) -> list[str]:
    options = ("--out", out, "--model", world.model, "--settings", world.settings, "--preset", "paper", "--workers", 1)
    return ["annotate", str(corpus or world.corpus), *map(str, options)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("cli")
    model = model_folder(folder / "tiny")
    corpus, settings, gsm8k = folder / "corpus.jsonl", folder / "settings.toml", folder / "gsm8k.jsonl"
    corpus.write_text(lines([{"id": f"d{i}", "text": text} for i, text in enumerate(TEXTS)]))
    settings.write_text(SETTINGS)
    gsm8k.write_text(lines([{"question": question, "answer": answer} for question, answer in GSM8K]))
    made = World(folder, model, corpus, settings, gsm8k, folder / "run", folder / "begun", folder / "tuned")
    assert "toolwise report" in invoke(*annotating(made, made.run))
    for file in (file for file in made.run.rglob("*") if file.is_file() and file.name != "manifest.json"):
        copy = made.unfinished / file.relative_to(made.run)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    assert str(made.tuned) in invoke("train", made.run, "--out", made.tuned, "--model", model, *FEW)
    return made


# Every command does its work


def test_a_report_says_in_the_terminal_what_became_of_every_tool(world: World) -> None:
    shown = invoke("report", world.run)
    assert "Calculator" in shown
    assert "Calendar" in shown
    assert "finished" in shown


def test_a_report_for_scripts_is_strict_json(world: World) -> None:
    report = jsonio.loads(invoke("report", world.run, "--json").strip())
    assert report["passages"] == len(TEXTS)
    assert [tool["name"] for tool in report["tools"]] == ["Calculator", "Calendar"]


def test_a_report_page_is_one_whole_file(world: World, tmp_path: Path) -> None:
    invoke("report", world.run, "--html", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_an_unfinished_run_has_a_report_that_says_so(world: World) -> None:
    assert "partial" in invoke("report", world.unfinished)


def test_calls_are_kept_by_another_threshold_without_a_model(world: World, tmp_path: Path) -> None:
    assert "Kept: 0 of Calculator, 0 of Calendar" in invoke("keep", world.run, "-o", tmp_path / "none", "--tau", "50")
    invoke("keep", world.unfinished, "-o", tmp_path / "some", "--tau", "50", "--tau", "Calendar=0.1")
    found = jsonio.loads(invoke("report", tmp_path / "some", "--json").strip())
    assert [tool["threshold"]["value"] for tool in found["tools"]] == [50, 0.1]


def test_a_threshold_that_is_none_is_refused(world: World, tmp_path: Path, toolwise: Toolwise) -> None:
    for tau in ("much", "0", "nan", "Calculator=", "-1"):
        refused(
            toolwise("keep", world.run, "-o", tmp_path / "out", f"--tau={tau}"), "bad_input", "such as Calculator=0"
        )


def test_annotating_again_does_nothing_again(world: World) -> None:
    before = {file: file.stat().st_mtime_ns for file in world.run.rglob("*.parquet")}
    invoke(*annotating(world, world.run))
    assert before == {file: file.stat().st_mtime_ns for file in world.run.rglob("*.parquet")}


def test_a_trained_model_is_an_ordinary_model_folder(world: World) -> None:
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {file.name for file in world.tuned.iterdir()}
    assert not world.tuned.with_name("tuned.training").exists()


def test_training_reports_strict_json_on_request(world: World, tmp_path: Path) -> None:
    options = ("--out", tmp_path / "plain", "--model", world.model, *FEW)
    report = jsonio.loads(invoke("train", world.run, "--plain", "--json", *options))
    assert report["steps"] == 2


def test_a_model_with_special_markers_is_trained_asked_and_measured(world: World, tmp_path: Path) -> None:
    out = tmp_path / "special"
    invoke("train", world.run, "--out", out, "--model", world.model, *FEW, "--notation", "special")
    options = ("--model", out, "--top-k", 100_000, "--max-tokens", 3)
    assert "<call>" in invoke("generate", "Two hats cost", *options)
    assert "<call>" not in invoke("generate", "Two hats cost", *options, "--disabled")
    text = world.file("special.txt", "The price is 18 crowns, said the man to the woman. " * 8)
    row = jsonio.loads(invoke("eval", "perplexity", text, "--model", out, "--context", 32, "--json"))[0]
    assert row["calls_disabled"] < row["perplexity"]


def test_a_text_is_continued(world: World) -> None:
    assert invoke("generate", "Three hats cost", "--model", world.tuned, "--max-tokens", 5).strip()


def test_events_are_lines_of_strict_json_that_end_with_a_stop(world: World) -> None:
    shown = invoke("generate", "Three hats cost", "--model", world.model, "--max-tokens", 5, "--json")
    events = [jsonio.loads(line) for line in shown.rstrip("\n").split("\n")]
    assert {event["event"] for event in events} <= {"text", "call", "result", "stop"}
    assert [event["reason"] for event in events if event["event"] == "stop"] == ["length"]
    assert events[-1]["sampled"] == 5


def test_a_call_starts_wherever_its_marker_is_likely_enough_unless_calls_are_disabled(world: World) -> None:
    options = ("generate", "It cost", "--model", world.model, "--max-tokens", 6, "--top-k", 300)
    assert invoke(*options).startswith(" [")
    assert " [" not in invoke(*options, "--disabled")


def test_the_prompt_may_come_from_standard_input(world: World, toolwise: Toolwise) -> None:
    given = "Ein Hut kostet 3 €".encode()
    options = ("--model", world.model, "--max-tokens", 3)
    piped = toolwise("generate", *options, stdin=given)
    assert piped.code == 0
    assert (
        piped.out
        == toolwise("generate", given.decode(), *options).out
        == toolwise("generate", "-", *options, stdin=given).out
    )


def test_perplexities_of_several_models_stand_side_by_side(world: World) -> None:
    text = world.file("text.txt", "A text of a few words, read twice. " * 4)
    options = ("eval", "perplexity", text, "--model", world.model, "--model", world.tuned, "--context", 32)
    rows = jsonio.loads(invoke(*options, "--json"))
    assert [row["model"] for row in rows] == [str(world.model), str(world.tuned)]
    assert all(row["perplexity"] > 1 for row in rows)
    assert "perplexity" in invoke(*options)


def test_the_filter_is_measured_on_annotations_of_people(world: World) -> None:
    options = ("eval", "filter", "--data", world.gsm8k, "--model", world.model)
    assert jsonio.loads(invoke(*options, "--json"))["calls"] == len(GSM8K)
    assert "2 human calls" in invoke(*options, "--wording", "plain", "--tau", "0.1,0.5")


def test_calls_of_a_run_are_held_against_people_and_their_judgements(world: World, tmp_path: Path) -> None:
    prose = world.file("prose.jsonl", lines([{"id": "p", "text": "Two and 2 make 2+2 = 4 in all. The answer is 4."}]))
    human = world.file(
        "human.jsonl", lines([{"question": "Two and 2 make", "answer": "2+2 = <<2+2=4>>4 in all.\n#### 4"}])
    )
    invoke(*annotating(world, tmp_path / "run", prose))
    found = jsonio.loads(invoke("eval", "filter", "--data", human, "--run", tmp_path / "run", "--json").strip())
    assert (found["documents"], found["people"]) == (1, 1)
    assert {one["per_cpu_minute"] is None for one in found["yields"]} <= {False}, "annotate counts what it takes"
    judged = world.file("judged.jsonl", lines([{"gain": 1.5, "useful": True}, {"gain": 0.2, "useful": False}]))
    assert "| 1 | 100.0 |" in invoke("eval", "filter", "--judged", judged, "--tau", "1")


def test_both_schemes_are_counted(world: World) -> None:
    options = ("--model", world.model, "--documents", 1, "--k", 1, "--m", 1, "--json")
    found = jsonio.loads(invoke("bench", "teach", world.corpus, *options))
    assert found["same_calls"] is True
    assert found["naive"]["all"]["positions"] > found["ours"]["all"]["positions"] > 0


# The help teaches


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, one in getattr(command, "commands", {}).items():
        yield (*path, name), one
        yield from commands(one, *path, name)


COMMANDS = dict(commands(get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_option_says_what_it_does(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    silent = [one.name for one in command.params if one.name != "help" and len((one.help or "").split()) < 2]
    assert not silent
    shown = invoke(*path, "--help")
    assert all(option in shown for one in command.params for option in one.opts if option.startswith("--"))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_an_example_fits_a_terminal_and_can_be_pasted(path: tuple[str, ...]) -> None:
    lines = (COMMANDS[path].epilog or "").replace("\n\n", "\n").split("\n")
    assert max(map(len, lines)) <= 78
    assert all(before.endswith(" \\") for before, line in pairwise(lines) if line.startswith("    "))


def test_a_paragraph_of_the_help_breaks_where_the_terminal_ends(
    toolwise: Toolwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert "(exit code 1); `toolwise approvals` decides" in toolwise("chat", "--help").out


def test_the_version_is_that_of_the_package(toolwise: Toolwise) -> None:
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["version"]
    done = toolwise("--version")
    assert (done.code, done.out, done.err) == (0, f"toolwise {declared}\n", "")
    assert "--version" in invoke("--help")


def test_without_a_command_the_help_is_shown(toolwise: Toolwise) -> None:
    done = toolwise()
    assert done.code == 2
    assert "annotate" in done.out
    assert done.err == ""


# A corpus that cannot be used

CORPORA: dict[str, tuple[Callable[[World], object], str]] = {
    "a file that is not there": (lambda w: w.folder / "nothing.txt", "no file or folder"),
    "an empty folder": (lambda w: (w.folder / "empty").mkdir(exist_ok=True) or w.folder / "empty", "no corpus"),
    "a file of another kind": (lambda w: w.file("table.csv", "a,b\n"), "no corpus"),
    "a device": (lambda w: "/dev/zero", "neither a file nor a folder"),
    "a path below a file": (lambda w: w.corpus / "more.txt", "no file or folder"),
    "a name that no file can have": (lambda w: w.folder / ("n" * 300), "cannot read .*too long"),
    "bytes that are no text": (lambda w: w.file("binary.txt", bytes(range(256))), "line 2: not UTF-8 at byte 128"),
    "Latin-1": (lambda w: w.file("latin.txt", "un café".encode("latin-1")), "not UTF-8 at byte 6"),
    "UTF-16": (lambda w: w.file("wide.txt", "two bytes".encode("utf-16")), "not UTF-8 at byte 0"),
    "UTF-16 JSON": (lambda w: w.file("wide.jsonl", '{"text": "x"}\n'.encode("utf-16")), "not UTF-8 at byte 0"),
    "an empty file": (lambda w: w.file("empty.txt", ""), "is empty"),
    "nothing but spaces": (lambda w: w.file("blank.txt", " \n\n "), "is empty"),
    "no line": (lambda w: w.file("none.jsonl", ""), "holds no document"),
    "a line of 10 MB": (
        lambda w: w.file("long.jsonl", b'{"text": "' + b"a" * 10_000_000 + b'"}\n'),
        "line 1: more than",
    ),
    "a text of 10 MB": (lambda w: w.file("long.txt", b"a" * 10_000_000), "more than 8388608 bytes"),
    "JSON without text": (lambda w: w.file("body.jsonl", '{"body": "x"}\n'), 'no "text" field among body'),
    "text that is a number": (lambda w: w.file("number.jsonl", '{"text": 5}\n'), "text field is int"),
    "a list": (lambda w: w.file("list.jsonl", "[1]\n"), "not an object"),
    "half a surrogate": (lambda w: w.file("half.jsonl", '{"text": "a\\ud800"}\n'), "unpaired surrogate"),
    "a NUL": (lambda w: w.file("nul.jsonl", '{"text": "a\\u0000"}\n'), "NUL character"),
    "no gzip": (lambda w: w.file("no.jsonl.gz", "nope"), "not a whole gzip file"),
    "half a gzip": (
        lambda w: w.file(
            "half.jsonl.gz", gzip.compress(lines([{"text": f"text {i}"} for i in range(999)]).encode())[:-9]
        ),
        "not a whole gzip file",
    ),
    "no Parquet": (lambda w: w.file("no.parquet", "PAR1"), "not a whole Parquet file"),
    "a second line that is broken": (
        lambda w: w.file("second.jsonl", '{"text": "3 and 4"}\n{nope\n'),
        "line 2: not JSON",
    ),
    "two documents of one name": (
        lambda w: w.file("twins.jsonl", '{"id": "a", "text": "x"}\n' * 2),
        "line 2: the id .* is taken",
    ),
}


@pytest.mark.parametrize("what", CORPORA)
def test_a_corpus_that_cannot_be_read_is_refused_and_leaves_nothing(
    what: str, world: World, toolwise: Toolwise, tmp_path: Path
) -> None:
    make, words = CORPORA[what]
    refused(toolwise(*annotating(world, tmp_path / "out", make(world))), "bad_input", words)
    assert not list(tmp_path.iterdir())


# A model that cannot be used


def broken(world: World, name: str, change: Callable[[Path], object]) -> Path:
    copy = world.folder / name
    copy.mkdir(exist_ok=True)
    for file in world.model.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    change(copy)
    return copy


def cut_in_half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


MODELS: dict[str, tuple[Callable[[World], object], str]] = {
    "a misspelt name": (lambda w: "smolm2-135m", "did you mean smollm2-135m"),
    "a folder that is not there": (lambda w: w.folder / "nothing", "no model or folder"),
    "a file": (lambda w: w.corpus, "no model or folder"),
    "a run": (lambda w: w.run, r"no config\.json"),
    "an empty name": (lambda w: "", "no model or folder"),
    "a hub id that cannot be fetched": (lambda w: "nobody/nothing", "nobody/nothing"),
    "a broken configuration": (
        lambda w: broken(w, "m1", lambda f: (f / "config.json").write_text("{nope")),
        "Cannot load the model",
    ),
    "a configuration of nothing": (
        lambda w: broken(w, "m2", lambda f: (f / "config.json").write_text("{}")),
        "Cannot load the model",
    ),
    "no tokenizer": (
        lambda w: broken(w, "m3", lambda f: [one.unlink() for one in f.glob("tokenizer*")]),
        "Cannot load the model",
    ),
    "no weights": (lambda w: broken(w, "m4", lambda f: (f / "model.safetensors").unlink()), "safetensors"),
    "half of the weights": (
        lambda w: broken(w, "m5", lambda f: cut_in_half(f / "model.safetensors")),
        "Cannot load the model",
    ),
}
USES: dict[str, Callable[[World, Path, object], list[object]]] = {
    "annotate": lambda w, out, model: [*annotating(w, out), "--model", model],
    "train": lambda w, out, model: ["train", w.run, "--out", out, "--model", model, *FEW],
    "generate": lambda w, out, model: ["generate", "It cost", "--model", model, "--max-tokens", 2],
    "perplexity": lambda w, out, model: ["eval", "perplexity", w.settings, "--model", model, "--context", 16],
}


@pytest.mark.parametrize("what", MODELS)
@pytest.mark.parametrize("use", USES)
def test_a_model_that_cannot_be_loaded_is_refused_and_leaves_nothing(
    use: str, what: str, world: World, toolwise: Toolwise, tmp_path: Path
) -> None:
    make, words = MODELS[what]
    refused(toolwise(*USES[use](world, tmp_path / "out", make(world))), "model_unavailable", words)
    assert not list(tmp_path.iterdir())


# Options and settings that cannot be meant


Request = Callable[[World, Path], list[object]]


def toml(text: str) -> Request:
    return lambda w, out: [*annotating(w, out), "--settings", w.file("bad.toml", text)]


def configured(settings: Callable[[World], object]) -> Request:
    return lambda w, out: [*annotating(w, out), "--settings", settings(w)]


def training(*options: object) -> Request:
    return lambda w, out: ["train", w.run, "--out", out, "--model", w.model, *FEW, *options]


def training_onto(place: Callable[[World], object]) -> Request:
    return lambda w, out: ["train", w.run, "--out", place(w), "--model", w.model, *FEW]


def filtering(data: Callable[[World], object], *options: object) -> Request:
    return lambda w, out: ["eval", "filter", "--data", data(w), "--model", w.model, *options]


def measuring(text: Callable[[World], object], *options: object) -> Request:
    return lambda w, out: ["eval", "perplexity", text(w), "--model", w.model, *options]


def generating(*options: object) -> Request:
    return lambda w, out: ["generate", "It cost", "--model", w.model, *options]


REQUESTS: dict[str, tuple[Request, str]] = {
    "an unknown command": (lambda w, out: ["anotate"], "Did you mean 'annotate'"),
    "an unknown option": (lambda w, out: ["generate", "--modle", "x"], "No such option: --modle"),
    "no corpus": (lambda w, out: ["annotate", "--out", out], r"corpus.*toolwise annotate --help"),
    "a NUL in a path": (lambda w, out: ["report", "a\0b"], "null byte"),
    "a run among its own texts": (
        lambda w, out: [
            *annotating(w, w.file("among/a.txt", "2 and 2 is 4").parent / "run", corpus=w.folder / "among")
        ],
        "among the texts that it is made of",
    ),
    "an unknown tool": (lambda w, out: [*annotating(w, out), "--tools", "Calculater"], "Calculater"),
    "no tool": (lambda w, out: [*annotating(w, out), "--tools", ","], "at least one tool"),
    "an unknown preset": (lambda w, out: [*annotating(w, out), "--preset", "smal"], "use one of paper, small"),
    "no document": (lambda w, out: [*annotating(w, out), "--limit", 0], "--limit"),
    "a negative number of workers": (lambda w, out: [*annotating(w, out), "--workers", -1], "--workers"),
    "settings that are not there": (configured(lambda w: w.folder / "no.toml"), "No such file"),
    "settings that are a folder": (configured(lambda w: w.folder), "directory"),
    "settings without an end": (configured(lambda w: "/dev/zero"), "more than 65536 bytes"),
    "settings that are no text": (configured(lambda w: w.file("bytes.toml", b"\xff\xfe")), "not UTF-8 at byte 0"),
    "settings that are no TOML": (toml("nope nope"), r"not TOML.*line 1"),
    "lists in lists without end": (toml("a = " + "[" * 3000 + "]" * 3000), "not TOML"),
    "an unknown setting": (toml("sed = 1"), "sed: there is no such setting"),
    "an unknown setting of a tool": (toml("[tools.Calculator]\nx = 1"), r"tools\.Calculator\.x"),
    "settings of an unknown tool": (toml("[tools.Calculater]\nk = 1"), "Calculater"),
    "a setting of another type": (toml('seed = "x"'), "seed"),
    "tools that are a number": (toml("tools = 3"), "tools"),
    "a negative setting": (toml("[tools.Calculator]\nk = -1"), r"tools\.Calculator\.k"),
    "an endless threshold": (toml("[tools.Calculator]\ntau_f = inf"), "finite"),
    "a share above one": (toml("[tools.Calculator]\ntau_f = {alpha = 2}"), r"tau_f\.alpha"),
    "a seed of fifty digits": (toml("seed = " + "9" * 50), "seed"),
    "a report of what is no run": (lambda w, out: ["report", w.model], "not the folder of a run"),
    "a report of a file": (lambda w, out: ["report", w.corpus], "not the folder of a run"),
    "a report of nothing": (lambda w, out: ["report", w.folder / ("n" * 300)], "not the folder of a run"),
    "a page in the place of a folder": (lambda w, out: ["report", w.run, "--html", w.folder], "cannot|Is a directory"),
    "a page below a file": (lambda w, out: ["report", w.run, "--html", w.corpus / "x.html"], "Not a directory"),
    "a negative number of calls to show": (lambda w, out: ["report", w.run, "--best", -1], "--best"),
    "training on a run that is not finished": (
        lambda w, out: ["train", w.unfinished, "--out", out, "--model", w.model],
        "not finished",
    ),
    "training on what is no run": (lambda w, out: ["train", w.model, "--out", out], "not the folder of a run"),
    "training onto a model": (training_onto(lambda w: w.tuned), "exists already"),
    "training onto a file": (training_onto(lambda w: w.corpus), "exists already"),
    "training below a file": (training_onto(lambda w: w.corpus / "x"), "Not a directory"),
    "training onto everything": (training_onto(lambda w: "/"), "new folder"),
    "an unknown notation": (training("--notation", "fancy"), "plain or special"),
    "an unknown training setting": (training("--set", "stepz=1"), "stepz"),
    "a training setting without a value": (training("--set", "steps"), "name=value"),
    "a training without end": (training("--set", f"steps={10**25}"), "steps times batch"),
    "a negative training seed": (training("--set", "seed=-1"), "seed"),
    "a learning rate that is no number": (training("--set", "learning_rate=nan"), "learning_rate"),
    "rows longer than the model reads": (training("--set", "length=99999"), "at most 2048 tokens"),
    "no likeliest token": (generating("--top-k", 0), "--top-k"),
    "a negative number of calls": (generating("--max-calls", -1), "--max-calls"),
    "no tokens": (generating("--max-tokens", 0), "--max-tokens"),
    "a negative temperature": (generating("--temperature", -1), "--temperature"),
    "a temperature that is no number": (generating("--temperature", "nan"), "--temperature"),
    "a negative seed": (generating("--seed", -1), "--seed"),
    "a day that is none": (generating("--today", "2023-13-45"), "--today"),
    "no thread": (generating("--threads", 0), "--threads"),
    "too many threads": (generating("--threads", 10**9), "--threads"),
    "an unknown tool to generate with": (generating("--tools", "Nope"), "Nope"),
    "an empty prompt": (lambda w, out: ["generate", "", "--model", w.model], "no text to continue"),
    "a prompt that is no UTF-8": (lambda w, out: ["generate", "caf\udce9", "--model", w.model], "not UTF-8 at byte 3"),
    "a prompt that the model cannot hold": (
        lambda w, out: ["generate", "a b " * 2000, "--model", w.model],
        "at most 2048 tokens",
    ),
    "a text to measure that is a folder": (measuring(lambda w: w.folder), "directory"),
    "a text to measure that is no text": (measuring(lambda w: w.file("bytes", b"\xff\xfe")), "not UTF-8 at byte 0"),
    "a text to measure that is empty": (measuring(lambda w: w.file("nothing", "")), "too short"),
    "a context longer than the model's": (measuring(lambda w: w.settings, "--context", 9999), "at most 2048 tokens"),
    "problems without annotations": (
        filtering(lambda w: w.file("plain.jsonl", lines([{"question": "a", "answer": "b"}]))),
        "no annotation",
    ),
    "problems that are no problems": (
        filtering(lambda w: w.file("odd.jsonl", lines([{"question": 1, "answer": []}]))),
        "line 1: a line of GSM8K",
    ),
    "problems of no file": (filtering(lambda w: w.folder / "no"), "No such file"),
    "thresholds that are no numbers": (filtering(lambda w: w.gsm8k, "--tau", "0.1,x"), "list of numbers"),
    "thresholds without end": (filtering(lambda w: w.gsm8k, "--tau", "inf"), "list of numbers"),
    "a run over other texts": (
        lambda w, out: ["eval", "filter", "--data", w.gsm8k, "--run", w.run],
        "the same problems",
    ),
    "neither problems nor judgements": (lambda w, out: ["eval", "filter"], "with --data, or judged calls with"),
    "an unknown wording": (filtering(lambda w: w.gsm8k, "--wording", "loud"), "loud"),
    "a comparison without numbers in the texts": (
        lambda w, out: ["bench", "teach", w.file("words.txt", "Nothing to count here."), "-m", w.model],
        "no passage with numbers",
    ),
}


@pytest.mark.parametrize("what", REQUESTS)
def test_a_request_that_cannot_be_meant_is_refused_and_leaves_nothing(
    what: str, world: World, toolwise: Toolwise, tmp_path: Path
) -> None:
    make, words = REQUESTS[what]
    refused(toolwise(*make(world, tmp_path / "out")), "bad_input", words)
    assert not list(tmp_path.iterdir())


def test_other_settings_into_a_begun_folder_are_refused(world: World, toolwise: Toolwise) -> None:
    refused(toolwise(*annotating(world, world.run), "--limit", 1), "settings_differ", "limit")


def test_a_damaged_run_is_an_operators_matter(world: World, toolwise: Toolwise, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes((world.run / "settings.json").read_bytes()[:-9])
    refused(toolwise("report", tmp_path), "corrupt", "damaged", exit_code=3)


def test_a_prompt_that_is_no_utf8_or_not_there_is_refused(world: World, toolwise: Toolwise) -> None:
    command = ("generate", "--model", world.model)
    refused(toolwise(*command, stdin="café".encode("latin-1")), "bad_input", "not UTF-8 at byte 3")
    refused(toolwise(*command, stdin=b"a" * (9 << 20)), "bad_input", "more than")
    refused(toolwise(*command), "bad_input", "no text")
    refused(toolwise(*command, stdin=None), "bad_input", "no text")


# Places that cannot be written

PLACES = {
    "a file": lambda w: w.corpus,
    "a path below a file": lambda w: w.corpus / "out",
    "a device": lambda w: "/dev/full",
    "the kernel's": lambda w: "/proc/out",
    "a name that is too long": lambda w: w.folder / ("n" * 300),
    "a folder of other things": lambda w: w.folder,
}


@pytest.mark.parametrize("where", PLACES)
def test_a_place_that_cannot_be_written_is_refused(where: str, world: World, toolwise: Toolwise) -> None:
    before = {file.name for file in world.folder.iterdir()}
    refused(toolwise(*annotating(world, PLACES[where](world))), "bad_input", "use|holds")
    assert {file.name for file in world.folder.iterdir()} == before


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    call: str, world: World, toolwise: Toolwise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real, left = getattr(os, call), 12

    def full(*args: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        refused(toolwise(*annotating(world, tmp_path / "run")), "storage_unavailable", "free space", exit_code=3)
    assert not list(tmp_path.rglob("*.tmp"))
    assert toolwise(*annotating(world, tmp_path / "run")).code == 0


def test_training_onto_a_full_disk_leaves_nothing(
    world: World, toolwise: Toolwise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    done = toolwise("train", world.run, "--out", tmp_path / "out", "--model", world.model, *FEW)
    refused(done, "storage_unavailable", "free space", exit_code=3)
    assert not list(tmp_path.iterdir())


def test_a_page_that_does_not_fit_leaves_the_old_one(
    world: World, toolwise: Toolwise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    page.write_text("old")

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    refused(toolwise("report", world.run, "--html", page), "storage_unavailable", "free space", exit_code=3)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("report.html", "old")]


def test_a_page_may_go_to_a_device(world: World, toolwise: Toolwise) -> None:
    refused(toolwise("report", world.run, "--html", "/dev/full"), "storage_unavailable", exit_code=3)
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (MemoryError(), "out_of_memory", "not enough memory"),
        (OSError(errno.EACCES, "Permission denied", "weights"), "storage_unavailable", "'weights': Permission denied"),
        (OSError(errno.ENOSPC, "No space left on device"), "storage_unavailable", "No space left"),
    ],
    ids=["memory", "permission", "disk"],
)
def test_what_the_machine_refuses_is_one_line(
    error: Exception,
    code: str,
    words: str,
    world: World,
    toolwise: Toolwise,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("toolwise.teach.pipeline.Pipeline.annotate", fail)
    refused(toolwise(*annotating(world, tmp_path / "run")), code, words, exit_code=3)


def test_a_name_that_would_steer_the_terminal_is_shown_as_text(toolwise: Toolwise) -> None:
    done = toolwise("report", "a\x1b[31m\nb\u202e")
    refused(done, "bad_input")
    assert "\x1b" not in done.err


# Interrupted, and not listened to


def test_an_interrupted_run_says_so_in_a_line_and_goes_on(
    world: World, toolwise: Toolwise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from toolwise.teach.pipeline import Pipeline

    shards = []
    real = Pipeline.annotate

    def interrupted(self: Pipeline, passages: Any) -> Any:
        shards.append(len(passages))
        if len(shards) == 2:
            raise KeyboardInterrupt
        return real(self, passages)

    monkeypatch.setattr(Pipeline, "annotate", interrupted)
    command = annotating(world, tmp_path / "run")
    refused(toolwise(*command), "interrupted", "the same command goes on", exit_code=130)
    assert toolwise(*command).code == 0
    assert shards == [2, 1, 1], "the first shard was not made again"
    wanted = jsonio.loads(invoke("report", world.run, "--json").strip())
    assert jsonio.loads(invoke("report", tmp_path / "run", "--json").strip())["tools"] == wanted["tools"]


def test_a_training_that_is_interrupted_at_once_leaves_nothing(
    world: World, toolwise: Toolwise, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolwise.teach.training.trainer.HeldOutTrainer.training_step", interrupted)
    done = toolwise("train", world.run, "--out", tmp_path / "out", "--model", world.model, *FEW)
    refused(done, "interrupted", "the same command goes on", exit_code=130)
    assert not list(tmp_path.iterdir())


def process(*args: str, stdout: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "toolwise", *args]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, check=False)


def test_a_reader_that_has_gone_ends_the_command_in_silence() -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as closed:
        done = process("--help", stdout=closed)
    assert (done.returncode, done.stderr) == (1, "")


def test_output_that_does_not_fit_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = process("--help", stdout=full)
    refused(Outcome(done.returncode, "", done.stderr), "storage_unavailable", "No space left", exit_code=3)
