"""A whole run on a real (tiny) network: nothing disappears, the way of working changes nothing, kills lose nothing."""

import json
import signal
import subprocess
import sys
from collections import Counter

import pytest

from tiny_models import model_folder
from toolwise.core.errors import BadInput, SettingsDiffer
from toolwise.notation.inline import strip
from toolwise.teach.annotate import annotate, load_augmented
from toolwise.teach.config import Settings, ToolSettings, load_settings
from toolwise.teach.records import Augmented, Candidate, Passage
from toolwise.teach.store import Store
from toolwise.tools.index import IndexSettings, build_index

SETTINGS = """
shard_passages = 2
call_tokens = 6
[tools.Calculator]
k = 3
m = 2
tau_f = 1e-6
proposers = ["lm", "enumerate"]
[tools.Calendar]
k = 2
m = 1
tau_f = 1e-6
"""
TEXTS = [
    ("Three hats cost 24 crowns, so one costs 24 / 3 = 8 crowns.", None),
    ("She read 12 pages on 5 days, a total of 60 pages. Then she rested for 2 days.", "1998-03-04"),
    ("There is nothing to count here, and nothing to look up.", None),
    ('It already says [QA("x") -> y] and 3 + 4 = 7 is right.', "1790"),
    ("Rows of 18 and columns of 24 make 432 places; 18 times 24 is 432.", None),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(model_folder(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    rows = [{"id": f"d{i}", "text": text, **({"date": date} if date else {})} for i, (text, date) in enumerate(TEXTS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def settings(tmp_path, **changes):
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS)
    return load_settings("paper", (), file).model_copy(update=changes)


def rows_of(folder):
    return list(Store.load(folder).read("candidates", Candidate))


def test_every_candidate_is_kept_or_has_a_reason_and_is_counted(tmp_path, corpus, model):
    report = annotate(corpus, tmp_path / "run", model, settings(tmp_path))
    rows = rows_of(tmp_path / "run")
    assert Counter(f"{r.tool}.{r.reason or 'kept'}" for r in rows) == report["counts"]
    assert report["passages"] == len(TEXTS)
    tried = {(r.passage, r.tool) for r in rows}
    assert {(f"d{i}#0", tool) for i in range(len(TEXTS)) for tool in ("Calculator", "Calendar")} == tried


def test_a_scored_shard_says_what_it_took(tmp_path, corpus, model):
    annotate(corpus, tmp_path / "run", model, settings(tmp_path))
    infos = Store.load(tmp_path / "run").done("scored").values()
    assert all(info.cpu_seconds >= 0 and info.positions >= 0 for info in infos)
    read = sum(len(text) for text, _ in TEXTS)  # in characters, of which a token has a few
    assert read / 10 < sum(info.positions for info in infos)


def test_the_augmented_texts_are_the_documents_with_the_kept_calls(tmp_path, corpus, model):
    annotate(corpus, tmp_path / "run", model, settings(tmp_path))
    kept = Counter(r.passage for r in rows_of(tmp_path / "run") if r.reason is None)
    augmented = load_augmented(tmp_path / "run")
    assert kept, "the threshold is so low that some call is kept, or this test shows nothing"
    assert {row.passage: len(row.spans) for row in augmented} == kept
    texts = {f"d{i}#0": text for i, (text, _) in enumerate(TEXTS)}
    for row in augmented:
        assert strip(row.text) == row.plain == texts[row.passage]
        for span in row.spans:
            assert row.text[span.start : span.end].startswith(f" [{span.tool}(")


LONG = """
from toolwise import Effect, tool

@tool(effect=Effect.READ, bounded=True, examples=["Once [Story()] upon a time.", "And [Story()] then it was late."])
def Story() -> str:
    return "and so on " * 1_000
"""


def test_a_result_that_is_longer_than_the_model_can_read_is_dropped_and_ends_no_run(tmp_path, corpus, model):
    (tmp_path / "mine.py").write_text(LONG)
    (tmp_path / "own.toml").write_text('[tools.Story]\ntau_s = 0\ntau_f = 1e-6\nproposers = ["lm_positions"]')
    wanted = load_settings("paper", [str(tmp_path / "mine.py")], tmp_path / "own.toml")
    report = annotate(corpus, tmp_path / "run", model, wanted)
    assert report["counts"]["Story.too_long"] > 0
    assert "Story.kept" not in report["counts"]


@pytest.mark.case("K3")
def test_a_document_that_holds_a_call_is_no_annotation(tmp_path, corpus, model):
    annotate(corpus, tmp_path / "run", model, settings(tmp_path))
    for row in load_augmented(tmp_path / "run"):
        assert not any("QA" in row.text[s.start : s.end] for s in row.spans)


@pytest.mark.case("K6")
def test_kept_calls_do_not_depend_on_the_number_of_workers(tmp_path, corpus, model):
    annotate(corpus, tmp_path / "one", model, settings(tmp_path), workers=1)
    annotate(corpus, tmp_path / "two", model, settings(tmp_path), workers=2)
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")


def test_early_bounds_change_nothing_that_is_kept(tmp_path, corpus, model):
    wanted = settings(tmp_path)
    raised = {name: own.model_copy(update={"tau_f": 0.02}) for name, own in wanted.tools.items()}
    wanted = wanted.model_copy(update={"tools": raised})
    annotate(corpus, tmp_path / "fast", model, wanted)
    annotate(corpus, tmp_path / "slow", model, wanted.model_copy(update={"early_bounds": False}))
    fast, slow = rows_of(tmp_path / "fast"), rows_of(tmp_path / "slow")
    assert [(r.passage, r.position, r.body) for r in fast if r.reason is None] == [
        (r.passage, r.position, r.body) for r in slow if r.reason is None
    ]


@pytest.mark.case("F11")
def test_other_settings_into_the_same_folder_are_refused(tmp_path, corpus, model):
    annotate(corpus, tmp_path / "run", model, settings(tmp_path))
    for changed in ({"seed": 1}, {"temperature": 0.5}):
        with pytest.raises(SettingsDiffer):
            annotate(corpus, tmp_path / "run", model, settings(tmp_path, **changed))
    with pytest.raises(SettingsDiffer):
        annotate(corpus, tmp_path / "run", model, settings(tmp_path), limit=2)


def test_an_index_may_move_and_may_not_change(tmp_path, corpus, model):
    def wanted(index, hits=2):
        quick = ToolSettings(tau_s=0.99)
        options = {"Search": {"index": str(index), "hits": hits}}
        return Settings(tools={"Search": quick}, sources=("Search",), options=options)

    build_index([corpus], tmp_path / "index")
    report = annotate(corpus, tmp_path / "run", model, wanted(tmp_path / "index"))
    moved = (tmp_path / "index").rename(tmp_path / "elsewhere")
    assert annotate(corpus, tmp_path / "run", model, wanted(moved)) == report
    with pytest.raises(SettingsDiffer, match=r"behind\.Search"):
        annotate(corpus, tmp_path / "run", model, wanted(moved, hits=3))
    build_index([corpus], tmp_path / "other", IndexSettings(words=50))
    with pytest.raises(SettingsDiffer, match=r"behind\.Search"):
        annotate(corpus, tmp_path / "run", model, wanted(tmp_path / "other"))


def test_a_finished_run_is_not_done_again(tmp_path, corpus, model):
    first = annotate(corpus, tmp_path / "run", model, settings(tmp_path))
    assert annotate(corpus, tmp_path / "run", model, settings(tmp_path)) == first


def test_a_corpus_that_cannot_be_read_leaves_no_folder(tmp_path, model):
    for name, content in (("empty.txt", b""), ("binary.txt", b"\xff\xfe\x00\x01"), ("broken.jsonl", b"{nope\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput):
            annotate(tmp_path / name, tmp_path / "run", model, settings(tmp_path))
        assert not (tmp_path / "run").exists()


_KILLED = """
import sys
from pathlib import Path
from toolwise.teach.annotate import annotate
from toolwise.teach.config import load_settings
corpus, out, model, file = sys.argv[1:]
annotate(Path(corpus), Path(out), model, load_settings("paper", (), Path(file)),
         progress=lambda stage, done, total: print(stage, done, flush=True))
"""


@pytest.mark.case("F7")
def test_a_run_that_was_killed_goes_on_and_keeps_the_same_calls(tmp_path, corpus, model):
    annotate(corpus, tmp_path / "undisturbed", model, settings(tmp_path))
    arguments = [str(corpus), str(tmp_path / "killed"), model, str(tmp_path / "settings.toml")]
    for stage in ("annotate 1", "annotate 2"):
        child = subprocess.Popen([sys.executable, "-c", _KILLED, *arguments], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip() == stage:
                child.send_signal(signal.SIGKILL)
                break
        child.stdout.close()
        assert child.wait(60) == -signal.SIGKILL
    annotate(corpus, tmp_path / "killed", model, settings(tmp_path))
    assert rows_of(tmp_path / "killed") == rows_of(tmp_path / "undisturbed")
    read = [list(Store.load(tmp_path / name).read("passages", Passage)) for name in ("killed", "undisturbed")]
    assert read[0] == read[1]
    assert [list(Store.load(tmp_path / n).read("augmented", Augmented)) for n in ("killed",)] == [
        list(Store.load(tmp_path / n).read("augmented", Augmented)) for n in ("undisturbed",)
    ]


def test_a_corpus_whose_files_have_other_names_is_another_corpus(tmp_path, model):
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXTS[0][0])
    (folder / "notes.md").write_text("not a corpus file")
    annotate(folder, tmp_path / "run", model, settings(tmp_path))
    (folder / "notes.md").write_text("changed")
    annotate(folder, tmp_path / "run", model, settings(tmp_path))
    (folder / "a.txt").rename(folder / "b.txt")
    with pytest.raises(SettingsDiffer, match="corpus"):
        annotate(folder, tmp_path / "run", model, settings(tmp_path))


def test_annotating_in_this_process_leaves_its_threads_as_they_were(tmp_path, corpus, model):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(2)
    try:
        annotate(corpus, tmp_path / "run", model, settings(tmp_path))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_documents_without_text_make_a_finished_run_without_passages(tmp_path, model):
    (tmp_path / "empty.jsonl").write_text('{"text": ""}\n{"text": ""}\n')
    report = annotate(tmp_path / "empty.jsonl", tmp_path / "run", model, settings(tmp_path))
    assert (report["passages"], report["counts"]) == (0, {})
    assert load_augmented(tmp_path / "run") == []
