"""Rows and a model folder go in, a model folder comes out: whole, the same every time, and also after a kill."""

import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rich.progress import Progress  # noqa: E402

import tiny_models as tiny  # noqa: E402
from toolwise.core import jsonio  # noqa: E402
from toolwise.core.errors import BadInput, InProgress, ModelUnavailable, SettingsDiffer, StorageUnavailable  # noqa: E402
from toolwise.core.lock import Lock  # noqa: E402
from toolwise.models.load import load_network, load_tokenizer  # noqa: E402
from toolwise.models.tokenizers import HFTokenizer  # noqa: E402
from toolwise.notation.inline import Insertion, find, weave  # noqa: E402
from toolwise.teach.records import Augmented, Span  # noqa: E402
from toolwise.teach.train import TrainSettings, hold_out, train  # noqa: E402
from toolwise.teach.training.data import TrainingData  # noqa: E402
from toolwise.teach.training.likelihood import Sums, sums  # noqa: E402
from toolwise.teach.training.run_folder import RunFolder  # noqa: E402

STEPS = 9
SETTINGS = TrainSettings(
    batch=6,
    steps=STEPS,
    learning_rate=1e-2,
    length=96,
    held_out_share=0.1,
    evaluate_every=4,
    checkpoint_every=3,
)


def row(n: int) -> Augmented:
    plain = f"Item {n}: the price is {n} crowns, said man {n * 7} to the woman."
    text = weave(plain, [Insertion(plain.index(" crowns"), f"Calculator({n} * 1)", str(n))])
    call = find(text)[0]
    span = Span(call.start, call.end, call.result_start, call.result_end, "Calculator")
    return Augmented(f"p{n}", f"d{n // 2}", text, plain, (span,))


ROWS = [row(n) for n in range(30)]


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return tiny.model_folder(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    """An undisturbed run that other runs are compared with."""
    return train(ROWS, base, tmp_path_factory.mktemp("trained") / "out", SETTINGS, tools=["Calculator"])


def changed(**settings) -> TrainSettings:
    return replace(SETTINGS, **settings)


def difference(one: Path, other: Path) -> float:
    a, b = load_network(one).state_dict(), load_network(other).state_dict()
    assert a.keys() == b.keys()
    return max((a[name] - b[name]).abs().max().item() for name in a)


def run_program(program: str, *launcher: str) -> subprocess.CompletedProcess:
    """Run a program that may import this file in a process of its own."""
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    return subprocess.run(
        [sys.executable, *launcher, program],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        timeout=120,
        capture_output=True,
        text=True,
    )


def train_until_killed(base: Path, out: Path, step: int) -> None:
    """The same run in a process of its own that dies by SIGKILL when it has made so many updates."""
    program = f"""
        import os, signal
        from pathlib import Path
        from rich.progress import Progress
        from test_train import ROWS, SETTINGS, train

        class Killer(Progress):
            def update(self, task_id, *, completed=None, **options):
                if completed == {step}:
                    os.kill(os.getpid(), signal.SIGKILL)

        base, out = Path({str(base)!r}), Path({str(out)!r})
        train(ROWS, base, out, SETTINGS, tools=["Calculator"], progress=Killer(disable=True))
    """
    done = run_program(textwrap.dedent(program), "-c")
    assert done.returncode == -signal.SIGKILL, done.stderr


class Interrupting(Progress):
    """Ends the run by an exception when it has made so many updates: quicker than a process to kill."""

    def __init__(self, step: int) -> None:
        super().__init__(disable=True)
        self.step = step

    def update(self, task_id, *, completed=None, **_):
        if completed == self.step:
            raise KeyboardInterrupt


def interrupt(base: Path, out: Path, step: int, settings: TrainSettings = SETTINGS) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(ROWS, base, out, settings, progress=Interrupting(step))


# -- what comes out ----------------------------------------------------------------------------------------------


def test_the_result_is_an_ordinary_model_folder(trained):
    network = transformers.AutoModelForCausalLM.from_pretrained(trained.out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained.out)
    assert network.config.use_cache is True
    assert tokenizer("price")["input_ids"] == tiny.tokenizer()("price")["input_ids"]
    assert not trained.out.with_name("out.training").exists()


def test_training_lowers_the_loss_and_the_held_out_perplexity(trained):
    assert trained.losses[-1][1] < trained.losses[0][1] - 1
    assert [h.step for h in trained.held_out] == [0, 4, 8, 9]
    assert trained.held_out[-1].disabled < trained.held_out[0].disabled / 2
    assert all(h.disabled < h.perplexity for h in trained.held_out)


def test_the_card_and_the_log_say_what_was_done(trained, base):
    card = jsonio.loads((trained.out / "toolwise.json").read_text())
    assert card["settings"]["learning_rate"] == SETTINGS.learning_rate
    assert (card["tools"], card["plain"], card["notation"]["open"]) == (["Calculator"], False, " [")
    assert card["rows"] == 28
    assert card["best_step"] == trained.best_step
    log = [jsonio.loads(line) for line in (trained.out / "train_log.jsonl").read_text().splitlines()]
    assert [(e["step"], e["loss"]) for e in log if "loss" in e] == list(trained.losses)
    assert [e["step"] for e in log if "held_out_disabled" in e] == [0, 4, 8, 9]


def test_the_rate_warms_up_from_above_zero_and_then_stays(trained):
    log = [jsonio.loads(line) for line in (trained.out / "train_log.jsonl").read_text().splitlines()]
    rates = [e["learning_rate"] for e in log if "learning_rate" in e]
    assert rates == pytest.approx([0.005] + [0.01] * 8)


def test_the_linear_schedule_goes_down_to_the_last_update(base, tmp_path):
    train(ROWS, base, tmp_path / "out", changed(schedule="linear", warmup=0.3, steps=5, held_out_share=0))
    log = [jsonio.loads(line) for line in (tmp_path / "out" / "train_log.jsonl").read_text().splitlines()]
    assert [e["learning_rate"] for e in log] == pytest.approx([0.01 / 3, 0.02 / 3, 0.01, 0.02 / 3, 0.01 / 3])


def test_the_checkpoint_with_the_best_held_out_perplexity_is_kept_not_the_last(base, tmp_path):
    rows = [
        Augmented(f"p{i}", f"d{i}", t, t, ()) for i, t in enumerate(["aaaa bbbb cccc dddd"] * 9 + ["zq9 xw8 yv7 vu6"])
    ]
    settings = changed(steps=6, evaluate_every=1, learning_rate=3e-2, batch=2)
    seed = next(s for s in range(50) if 9 in hold_out([r.document for r in rows], changed(seed=s)))
    report = train(rows, base, tmp_path / "out", replace(settings, seed=seed))
    best = min(report.held_out[1:], key=lambda h: h.disabled)
    assert report.best_step == best.step < report.steps
    data = TrainingData.of(rows, load_tokenizer(base), changed(seed=seed), False)
    found = Sums.of(sums(load_network(report.out), data.held_out, data.marker, batch_tokens=64))
    assert math.exp(found.disabled / found.tokens) == pytest.approx(best.disabled, rel=1e-5)


# -- the same again ----------------------------------------------------------------------------------------------


def test_the_same_rows_settings_and_seed_give_the_same_weights(trained, base, tmp_path):
    again = train(ROWS, base, tmp_path / "out", SETTINGS)
    assert again.losses == trained.losses
    assert difference(again.out, trained.out) == 0


def test_how_many_rows_a_device_reads_at_once_changes_nothing(trained, base, tmp_path):
    wide = train(ROWS, base, tmp_path / "out", changed(device_tokens=4 * SETTINGS.length))
    assert difference(wide.out, trained.out) < 1e-5


def test_two_processes_train_what_one_does(trained, base, tmp_path):
    program = tmp_path / "program.py"
    out = tmp_path / "out"
    program.write_text(
        "from pathlib import Path\nfrom test_train import ROWS, SETTINGS, train\n"
        f"train(ROWS, Path({str(base)!r}), Path({str(out)!r}), SETTINGS)\n"
    )
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    done = run_program(str(program), *launcher)
    assert done.returncode == 0, done.stderr
    assert difference(out, trained.out) < 1e-5


def test_a_network_that_cannot_pack_is_trained_unpacked(tmp_path):
    folder = tiny.model_folder(tmp_path / "base", "bloom")
    report = train(ROWS, folder, tmp_path / "out", changed(steps=3))
    assert report.packed is False
    assert report.losses[-1][1] < report.losses[0][1]


def test_a_run_killed_between_checkpoints_goes_on_to_the_same_weights(trained, base, tmp_path):
    out = tmp_path / "out"
    train_until_killed(base, out, step=8)
    assert not out.exists()
    half = tmp_path / "out.training" / "checkpoint-8"  # as if killed while writing it
    assert not half.exists()
    half.mkdir()
    (half / "trainer_state.json").write_text('{"global_step": 8, ')
    report = train(ROWS, base, out, SETTINGS, tools=["Calculator"])
    assert report.resumed_from == 6
    assert report.losses == trained.losses
    assert report.held_out == trained.held_out
    assert difference(out, trained.out) < 1e-5
    assert (out / "train_log.jsonl").read_text() == (trained.out / "train_log.jsonl").read_text()


def test_a_run_killed_while_it_writes_the_model_goes_on(trained, base, tmp_path, monkeypatch):
    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(RunFolder, "publish", killed)
        train(ROWS, base, tmp_path / "out", SETTINGS)
    assert not (tmp_path / "out").exists()
    report = train(ROWS, base, tmp_path / "out", SETTINGS)
    assert report.resumed_from == STEPS
    assert difference(report.out, trained.out) == 0


def test_a_run_killed_after_its_model_got_its_name_is_finished(base, tmp_path):
    interrupt(base, tmp_path / "out", step=4)
    shutil.copytree(tmp_path / "out.training", tmp_path / "copy")
    train(ROWS, base, tmp_path / "out", SETTINGS)
    (tmp_path / "copy").rename(tmp_path / "out.training")
    with pytest.raises(BadInput, match="exists"):
        train(ROWS, base, tmp_path / "out", SETTINGS)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_at_most_two_checkpoints_stand_on_the_disk(base, tmp_path):
    seen = []

    class Counting(Progress):
        def update(self, task_id, **_):
            seen.append(len(list((tmp_path / "out.training").glob("checkpoint-*"))))

    train(ROWS, base, tmp_path / "out", changed(checkpoint_every=1), progress=Counting(disable=True))
    assert max(seen) == 2


def test_an_unfinished_run_with_other_settings_or_rows_is_left_alone(base, tmp_path):
    interrupt(base, tmp_path / "out", step=4)
    before = sorted((tmp_path / "out.training").rglob("*"))
    for rows, settings in ((ROWS, changed(seed=1)), (ROWS[:-1], SETTINGS)):
        with pytest.raises(SettingsDiffer):
            train(rows, base, tmp_path / "out", settings)
    assert sorted((tmp_path / "out.training").rglob("*")) == before


def test_what_a_run_left_before_its_first_checkpoint_stands_in_nobodys_way(base, tmp_path):
    interrupt(base, tmp_path / "out", step=2)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "out.training").mkdir()  # what a kill would leave
    (tmp_path / "out.training" / "run.json").write_text("{}")
    train(ROWS, base, tmp_path / "out", changed(steps=1))
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_folder_of_somebody_else_beside_the_output_is_refused_and_left_alone(base, tmp_path):
    (tmp_path / "out.training").mkdir()
    (tmp_path / "out.training" / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="exists"):
        train(ROWS, base, tmp_path / "out", SETTINGS)
    assert [p.name for p in (tmp_path / "out.training").iterdir()] == ["thesis.txt"]


def test_two_runs_into_one_folder_are_refused(base, tmp_path):
    (tmp_path / "out.training").mkdir()
    lock = Lock(tmp_path / "out.training" / "lock")
    with pytest.raises(InProgress):
        train(ROWS, base, tmp_path / "out", SETTINGS)
    lock.close()


# -- the control, and LoRA ---------------------------------------------------------------------------------------


def test_the_plain_run_reads_the_same_documents_in_the_same_order(base):
    tokenizer = load_tokenizer(base)
    woven, plain = (TrainingData.of(ROWS, tokenizer, SETTINGS, p) for p in (False, True))
    assert [e.row for e in woven.examples] == [e.row for e in plain.examples]
    assert woven.held_out == plain.held_out
    assert not any(piece.calls for example in plain.examples for piece in example.pieces)
    assert all(piece.calls for example in woven.examples for piece in example.pieces)


def test_the_plain_run_ends_in_another_model(trained, base, tmp_path):
    plain = train(ROWS, base, tmp_path / "out", SETTINGS, plain=True)
    assert plain.rows == trained.rows
    assert plain.tokens < trained.tokens
    assert difference(plain.out, trained.out) > 1e-3


def test_lora_is_merged_into_an_ordinary_model_and_kept_beside_it(base, tmp_path):
    from peft import PeftModel

    report = train(ROWS, base, tmp_path / "out", changed(lora_rank=4, steps=4))
    assert not (report.out / "adapter_config.json").exists()
    assert report.losses[-1][1] < report.losses[0][1]
    merged = load_network(report.out)
    adapted = PeftModel.from_pretrained(load_network(base), report.out / "adapter").eval()
    ids = torch.arange(1, 40)[None]
    with torch.no_grad():
        assert torch.allclose(merged(ids).logits, adapted(ids).logits, atol=1e-5)
        assert not torch.allclose(merged(ids).logits, load_network(base)(ids).logits, atol=1e-2)


def test_a_lora_run_that_was_broken_off_goes_on_to_the_same_weights(base, tmp_path):
    settings = changed(lora_rank=4, steps=7)
    straight = train(ROWS, base, tmp_path / "straight", settings)
    interrupt(base, tmp_path / "out", 5, settings)
    report = train(ROWS, base, tmp_path / "out", settings)
    assert report.resumed_from == 4
    assert difference(report.out, straight.out) < 1e-5


def test_gradient_checkpointing_changes_memory_not_weights(trained, base, tmp_path):
    report = train(ROWS, base, tmp_path / "out", changed(gradient_checkpointing=True))
    assert difference(report.out, trained.out) < 1e-5


# -- held-out texts and ends -------------------------------------------------------------------------------------


def test_whole_documents_are_held_out():
    documents = [f"d{i // 4}" for i in range(80)]
    held = hold_out(documents, changed(held_out_share=0.1))
    assert len(held) == 8
    assert not {documents[i] for i in held} & {d for i, d in enumerate(documents) if i not in held}


def test_a_share_of_zero_or_one_document_holds_nothing_out():
    assert hold_out(["a", "b"], changed(held_out_share=0)) == frozenset()
    assert hold_out(["a", "a"], SETTINGS) == frozenset()
    assert len(hold_out(["a", "a", "a", "b"], SETTINGS)) == 1


def test_without_held_out_texts_the_last_checkpoint_is_kept(base, tmp_path):
    report = train(ROWS, base, tmp_path / "out", changed(held_out_share=0, steps=2))
    assert (report.held_out, report.best_step) == ((), 2)


def test_epochs_end_a_run_before_its_steps(base, tmp_path):
    assert train(ROWS, base, tmp_path / "out", changed(epochs=1)).steps == 5


def test_the_end_of_text_is_the_token_with_that_name_and_never_an_end_of_turn():
    tokenizer = tiny.tokenizer()
    assert HFTokenizer(tokenizer).end_of_text == 0
    chat = tiny.tokenizer()
    chat.add_special_tokens({"eos_token": "<|im_end|>"})
    assert HFTokenizer(chat).end_of_text == 0
    other = transformers.PreTrainedTokenizerFast(tokenizer_object=tiny.tokenizer(end="<stop>").backend_tokenizer)
    assert HFTokenizer(other).end_of_text is None
    other.eos_token = "<stop>"
    assert HFTokenizer(other).end_of_text == 0
    other.chat_template = "{{ messages[0].content }}<stop>"
    assert HFTokenizer(other).end_of_text is None


# -- what is refused ---------------------------------------------------------------------------------------------


def test_no_rows_are_refused(base, tmp_path):
    with pytest.raises(BadInput, match="no rows"):
        train([], base, tmp_path / "out", SETTINGS)


def test_rows_of_which_none_can_be_trained_on_are_refused(base, tmp_path):
    with pytest.raises(BadInput, match="empty"):
        train([Augmented("p", "d", "", "", ())], base, tmp_path / "out", SETTINGS)


def test_a_folder_without_a_model_is_refused(tmp_path):
    for name in ("missing", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(ModelUnavailable):
            train(ROWS, tmp_path / name, tmp_path / "out", SETTINGS)
    assert not (tmp_path / "out.training").exists()


def test_a_folder_whose_weights_are_damaged_is_refused(base, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in base.iterdir():
        (broken / file.name).write_bytes(
            file.read_bytes()[:500] if file.suffix == ".safetensors" else file.read_bytes()
        )
    with pytest.raises(ModelUnavailable):
        train(ROWS, broken, tmp_path / "out", SETTINGS)
    assert [p.name for p in tmp_path.iterdir()] == ["broken"]


def test_an_output_that_exists_is_refused_and_left_alone(base, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="exists"):
        train(ROWS, base, tmp_path / "out", SETTINGS)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "mine"


def test_an_empty_output_folder_is_filled(base, tmp_path):
    (tmp_path / "out").mkdir()
    train(ROWS, base, tmp_path / "out", changed(steps=1, held_out_share=0))
    assert (tmp_path / "out" / "config.json").is_file()


def test_an_output_that_cannot_be_written_is_refused(base, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot use"):
        train(ROWS, base, tmp_path / "file" / "out", SETTINGS)


def test_a_disk_too_small_for_the_checkpoints_is_refused_before_training(base, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=500_000))
    with pytest.raises(StorageUnavailable, match="GB are free"):
        train(ROWS, base, tmp_path / "out", SETTINGS)
    train(ROWS, base, tmp_path / "out", changed(lora_rank=1, steps=1))


@pytest.mark.parametrize("first", [1, 4], ids=["before the first checkpoint", "while a later one is written"])
def test_a_disk_that_fills_while_training_is_an_error_of_ours_and_the_run_goes_on(
    first, trained, base, tmp_path, monkeypatch
):
    real, written = torch.save, []

    def full(*args, **named):
        written.append(args)
        if len(written) > first:
            raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0")
        return real(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", full)
        with pytest.raises(StorageUnavailable, match="free space or repair the disk and run again"):
            train(ROWS, base, tmp_path / "out", SETTINGS, tools=["Calculator"])
    whole = [state.parent.name for state in tmp_path.glob("out.training/checkpoint-*/trainer_state.json")]
    left = [checkpoint.name for checkpoint in tmp_path.glob("out.training/checkpoint-*")]
    assert left == whole == ([] if first == 1 else ["checkpoint-3"])
    assert bool(left) == (tmp_path / "out.training").exists()
    train(ROWS, base, tmp_path / "out", SETTINGS, tools=["Calculator"])
    assert difference(trained.out, tmp_path / "out") == 0


def test_a_loss_that_is_not_finite_ends_the_run_without_a_model(base, tmp_path):
    with pytest.raises(BadInput, match="lower learning rate"):
        train(ROWS, base, tmp_path / "out", changed(learning_rate=1e38, warmup=0.0, checkpoint_every=1))
    assert not (tmp_path / "out").exists()


def test_rows_longer_than_the_network_can_read_are_refused(tmp_path):
    folder = tiny.model_folder(tmp_path / "base", "gpt2")
    with pytest.raises(BadInput, match="at most 256"):
        train(ROWS, folder, tmp_path / "out", changed(length=257))


@pytest.mark.parametrize(
    "wrong", [{"batch": 0}, {"learning_rate": -1.0}, {"warmup": 2.0}, {"length": 4}, {"lora_rank": 0}, {"epochs": 0}]
)
def test_settings_that_cannot_be_meant_are_refused(wrong):
    with pytest.raises(BadInput):
        changed(**wrong)


def test_the_libraries_settings_are_put_back(base, tmp_path, monkeypatch):
    before = torch.get_num_threads(), transformers.utils.logging.get_verbosity()
    seen = []
    monkeypatch.setattr(
        "toolwise.teach.train.load_tokenizer", lambda f: seen.append(torch.get_num_threads()) or load_tokenizer(f)
    )
    with pytest.raises(BadInput):
        train([Augmented("p", "d", "", "", ())], base, tmp_path / "out", changed(threads=2))
    assert seen == [2]
    assert (torch.get_num_threads(), transformers.utils.logging.get_verbosity()) == before
