"""What holds for every task: it loads in both shapes, a perfect model gets all of it and a silent one nothing."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from task_files import FILES, HUB, write_rows, write_task_files
from toolwise.core.errors import BadInput
from toolwise.evals.tasks import TASKS, Example, Table, Task, data_source, named, sample
from toolwise.evals.tasks.base import REASONS, Row
from toolwise.evals.tasks.source import Hub
from toolwise.teach.prompts import PROMPTS

every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task_files(tmp_path)


class ShapedFromTheHub:
    """Rows as the hub has them, in memory."""

    def rows(self, table: Table) -> Iterator[tuple[str, Row]]:
        return (("a row", table.shape(row)) for row in HUB[table.file])

    def digest(self, table: Table) -> str:
        return "0"


def right(task: Task, examples: tuple[Example, ...], text: str) -> float:
    """The share that is right when `{}` in the text is an example's answer."""
    written = [text.format(example.answers[0]) for example in examples]
    verdicts = [task.judge(example, said, finished=True) for example, said in zip(examples, written, strict=True)]
    return sum(verdict.right for verdict in verdicts) / len(examples)


@every_task
def test_a_perfect_model_gets_all_of_it(task: Task, folder: Path) -> None:
    examples = task.load(data_source(str(folder))).examples
    assert right(task, examples, " {}.") == 1.0
    assert right(task, examples, " {}, I think.\nWhat else?") == 1.0


@every_task
@pytest.mark.parametrize("text", ["", "\n", " I do not know.", " ...", " = ", " <|endoftext|>"])
def test_a_model_that_says_nothing_gets_none_of_it(task: Task, folder: Path, text: str) -> None:
    assert right(task, task.load(data_source(str(folder))).examples, text) == 0.0


@every_task
def test_a_perfect_answer_ends_the_decoding_before_the_model_does(task: Task, folder: Path) -> None:
    for example in task.load(data_source(str(folder))).examples:
        text = f" {example.answers[0]}.\nAnd then I went home"
        verdict = task.judge(example, text, finished=False)
        assert (verdict.right, verdict.settled) == (True, True)


@every_task
def test_the_hub_has_the_same_examples_in_other_fields(task: Task, folder: Path) -> None:
    here, there = task.load(data_source(str(folder))).examples, task.load(ShapedFromTheHub()).examples
    assert [example.prompt for example in here] == [example.prompt for example in there]
    same = {"lama-google-re": ("Skarvik",)}  # the hub has Google-RE without its aliases
    for one, other in zip(here, there, strict=True):
        assert other.answers == one.answers or other.answers == same[task.name]
        assert (one.today, set(one.about)) == (other.today, set(other.about) | (set(one.about) - set(other.about)))


@every_task
def test_ids_are_each_examples_own_and_its_prompt_ends_where_the_model_begins(task: Task, folder: Path) -> None:
    examples = task.load(data_source(str(folder))).examples
    assert len({example.id for example in examples}) == len(examples) > 0
    for example in examples:
        assert example.answers
        assert example.prompt == example.prompt.strip()
        assert not {"{", "}", "[MASK]", "[X]", "[Y]", "_X_"} & set(example.prompt.split())


@every_task
def test_its_words_for_a_reader_are_those_that_the_model_reads(task: Task, folder: Path) -> None:
    begin = task.prompt.partition("{")[0]
    end = task.prompt.rpartition("}")[2]
    examples = task.load(data_source(str(folder))).examples
    assert all(example.prompt.startswith(begin) and example.prompt.endswith(end) for example in examples)


@every_task
def test_tools_that_are_off_are_tools_that_there_are(task: Task) -> None:
    assert set(task.without) <= set(PROMPTS)


@every_task
def test_other_data_has_another_digest(task: Task, folder: Path) -> None:
    before = task.digest(data_source(str(folder)))
    assert before == task.digest(data_source(str(folder)))
    for table in task.tables:
        write_rows(folder / table.file, [*FILES[table.file], {"more": 1}])
        assert task.digest(data_source(str(folder))) != before
        write_rows(folder / table.file, FILES[table.file])


def test_the_papers_tools_are_off_where_they_would_hold_the_answers() -> None:
    off = {task.name: task.without for task in TASKS.values() if task.without}
    assert off == {
        **dict.fromkeys(("lama-squad", "lama-google-re", "lama-trex"), ("Search",)),
        **dict.fromkeys(("webquestions", "nq", "triviaqa"), ("QA",)),
    }


def test_what_is_left_out_is_counted_with_its_reason(folder: Path) -> None:
    dropped = {task.name: dict(task.load(data_source(str(folder))).dropped) for task in TASKS.values()}
    assert {name: reasons for name, reasons in dropped.items() if reasons} == {
        "lama-squad": {"mask_not_last": 1},
        "lama-trex": {"mask_not_last": 1, "repeated": 1, "no_template": 1},
        "templama": {"mask_not_last": 1},
        "asdiv": {"not_one_number": 1},
        "webquestions": {"no_answer": 1},
        "nq": {"no_answer": 1},
    }
    assert {reason for reasons in dropped.values() for reason in reasons} | {"not_in_english"} == set(REASONS)


@pytest.mark.parametrize(
    ("name", "prompt", "answers"),
    [
        (
            "lama-squad",
            "Please complete the following text so that it is factually correct: "
            "The keeper of the lighthouse lives in a",
            ("tower",),
        ),
        (
            "lama-google-re",
            "Please complete the following text so that it is factually correct: Ane Holm was born in",
            ("Skarvik", "Old Skarvik"),
        ),
        (
            "lama-trex",
            "Please complete the following text so that it is factually correct: Skarvik is located in",
            ("Norway",),
        ),
        (
            "templama",
            "Please complete the following text so that it is factually correct: Ane Holm holds the position of",
            ("keeper", "lighthouse keeper"),
        ),
        ("asdiv", "A keeper has 7 lamps and buys 2. How many lamps are there? The answer is", ("9",)),
        ("svamp", "A boat brings 1,200 candles How many are left when 4 burn? The answer is", ("1196",)),
        ("mawps", "Ole had 3.5 litres of oil and burned 1. What is left? The answer is", ("2.5",)),
        ("nq", "Answer the following question: when was the lighthouse of skarvik built?", ("1871",)),
        (
            "xquad-es",
            "Your task is to answer a question based on the following paragraph: The lighthouse of Skarvik was built "
            "in 1871. Its first keeper was Ane Holm. Now answer the following question in English: ¿Cuándo se "
            "construyó el faro?",
            ("1871",),
        ),
    ],
)
def test_a_model_is_asked_in_the_papers_words(name: str, prompt: str, answers: tuple[str, ...], folder: Path) -> None:
    first = TASKS[name].load(data_source(str(folder))).examples[0]
    assert (first.prompt, first.answers) == (prompt, answers)


def test_a_facts_year_is_told_by_the_calendar(folder: Path) -> None:
    (only,) = TASKS["templama"].load(data_source(str(folder))).examples
    assert only.today == "2014"


def test_a_question_that_english_lacks_is_left_out(folder: Path) -> None:
    write_rows(folder / "xquad_en.jsonl", [])
    assert TASKS["xquad-es"].load(data_source(str(folder))).dropped == {"not_in_english": 1}


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        *[
            ("9 (apples)", "9"),
            ("14  (seats)", "14"),
            ("3,000 (m)", "3000"),
            ("5/2", "5/2"),
            (51.0, "51"),
            ("-3", "-3"),
        ],
        *[("2.50 (dollars)", "2.50"), ("10 (sq. ft (each))", "10"), ("1/6", "1/6")],
        *[(said, None) for said in ("Yes", "5:45", "3:4", "1st", "8; 40", "5 (a); 6 (b)", "-(1/3)", "", "1/0", "5 6")],
    ],
)
def test_a_problem_is_asked_if_its_answer_is_one_number(answer: object, number: str | None, folder: Path) -> None:
    write_rows(folder / "asdiv.jsonl", [{**FILES["asdiv.jsonl"][0], "answer": answer}])
    examples = TASKS["asdiv"].load(data_source(str(folder))).examples
    assert [example.answers for example in examples] == ([(number,)] if number else [])


def test_a_file_may_be_compressed(folder: Path) -> None:
    plain = (folder / "svamp.jsonl").read_bytes()
    (folder / "svamp.jsonl").unlink()
    (folder / "svamp.jsonl.gz").write_bytes(gzip.compress(plain))
    assert len(TASKS["svamp"].load(data_source(str(folder))).examples) == 1


def test_a_missing_file_is_one_line_that_says_where_else_it_is(folder: Path) -> None:
    (folder / "mawps.jsonl").unlink()
    for ask in (TASKS["mawps"].load, TASKS["mawps"].digest):
        with pytest.raises(
            BadInput, match=r"has no 'mawps.jsonl'; put it there, or take it from the hub: --data hub\."
        ):
            ask(data_source(str(folder)))


def test_a_folder_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadInput, match="There is no folder 'nowhere'"):
        data_source("nowhere")


@pytest.mark.parametrize(
    ("file", "row", "task"),
    [
        ("lama_squad.jsonl", {"masked_sentences": ["One [MASK].", "Two."], "obj_label": "x", "id": "1"}, "lama-squad"),
        ("asdiv.jsonl", {"id": "1", "body": "Text."}, "asdiv"),
        ("triviaqa.jsonl", {"context": "Who?", "answer": "x", "aliases": []}, "triviaqa"),
        ("xquad_es.jsonl", {"id": ["a"], "question": "x"}, "xquad-es"),
        ("date_understanding.jsonl", {"input": "x", "target_scores": ["02/01/2020"]}, "date-understanding"),
    ],
)
def test_a_row_of_another_shape_is_named_with_its_line(file: str, row: Row, task: str, folder: Path) -> None:
    write_rows(folder / file, [FILES[file][0], row])
    with pytest.raises(BadInput, match=rf"{file}.*2.*not a row as '{file}' has them"):
        TASKS[task].load(data_source(str(folder)))


def test_the_hub_is_read_by_its_own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "sums").mkdir()
    write_rows(tmp_path / "sums" / "test.jsonl", HUB["mawps.jsonl"])
    (table,) = TASKS["mawps"].tables
    local = Table(table.file, f"hub:{tmp_path / 'sums'}:default:test", table.shape)
    assert [row["answer"] for _, row in Hub().rows(local)] == ["2.5"]
    assert len(Hub().digest(local)) == 16
    (tmp_path / "sums" / "test.jsonl").write_text('{"question": "What?"}\n')
    with pytest.raises(BadInput, match="has other fields than expected"):
        list(Hub().rows(local))


def test_without_a_network_the_hub_is_one_line() -> None:
    pytest.importorskip("datasets")
    with pytest.raises(BadInput, match="check its name, its split and the network"):
        TASKS["svamp"].load(Hub())


def test_what_the_hub_lacks_is_refused() -> None:
    with pytest.raises(BadInput, match=r"The hub has no 'x.jsonl'"):
        Hub().digest(Table("x.jsonl"))


def test_a_family_stands_for_its_tasks() -> None:
    assert [task.name for task in named(["lama", "nq", "lama-trex"])] == [
        *("lama-squad", "lama-google-re", "lama-trex", "nq"),
    ]
    assert len(named(["mlqa"])) == 7
    for unknown in ("", "date", "squad", "LAMA"):
        with pytest.raises(BadInput, match="There is no task"):
            named([unknown])


def test_a_larger_sample_holds_a_smaller_one_and_another_seed_draws_another() -> None:
    examples = [Example(str(number), "", ("x",)) for number in range(100)]
    ten = sample(examples, 10, 0)
    assert sample(examples, 50, 0)[:10] == ten != sample(examples, 10, 1)
    assert sample(examples, None, 0) == examples
    assert len(sample(examples, 1_000, 0)) == 100
