"""Several examples share a row, and none of them can tell."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import tiny_models as tiny  # noqa: E402
from toolwise.teach.training.examples import Example, RowExamples  # noqa: E402
from toolwise.teach.training.packing import (  # noqa: E402
    IGNORED,
    PackedRows,
    collate,
    first_fit_decreasing,
    keeps_apart,
    order,
)
from toolwise.teach.training.trainer import token_mean  # noqa: E402


def example(length: int, first: int = 1, silent: tuple[int, ...] = ()) -> Example:
    ids = tuple((first + 7 * i) % 299 + 1 for i in range(length))
    return Example(ids, tuple(i not in silent for i in range(length)))


ROWS = [(example(9), example(14, 50, silent=(3, 4)), example(6, 90)), (example(20, 120),)]


def alone(network) -> float:
    """The slow, obvious loss: every example by itself, summed over its labelled tokens."""
    total, count = 0.0, 0
    for piece in (piece for row in ROWS for piece in row):
        logits = network(torch.tensor([piece.ids]), use_cache=False).logits[0, :-1]
        losses = torch.nn.functional.cross_entropy(logits, torch.tensor(piece.ids[1:]), reduction="none")
        counts = torch.tensor(piece.mask[1:])
        total, count = total + losses[counts].sum().item(), count + int(counts.sum())
    return total / count


def together(network, **options) -> float:
    batch = collate(ROWS, packed=True)
    labels = batch.pop("labels")
    return token_mean(network(**batch, **options), labels).item()


@settings(max_examples=100)
@given(st.lists(st.integers(1, 20), max_size=40))
def test_every_example_is_packed_once_and_no_row_is_too_long(lengths):
    bins = first_fit_decreasing(lengths, 20)
    assert sorted(i for members in bins for i in members) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in members) <= 20 for members in bins)
    assert len(bins) <= -(-sum(lengths) // 10) + 1


@settings(max_examples=50)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(0, 5))
def test_an_epoch_reads_every_row_once_before_any_row_again(count, batch, seed):
    stream = [i for indices in order(count, batch, 12, seed) for i in indices]
    for start in range(0, len(stream) - count + 1, count):
        assert sorted(stream[start : start + count]) == list(range(count))
    assert stream == [i for indices in order(count, batch, 12, seed) for i in indices]


def test_another_seed_reads_in_another_order():
    assert list(order(30, 10, 3, 0)) != list(order(30, 10, 3, 1))


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@torch.no_grad()
def test_the_packed_loss_is_that_of_each_example_alone(kind):
    network = tiny.network(kind)
    network.config.use_cache = False
    assert together(network) == pytest.approx(alone(network), abs=1e-5)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@torch.no_grad()
def test_with_a_mask_or_a_cache_packed_examples_see_each_other(kind):
    network = tiny.network(kind)
    ones = torch.ones(2, max(sum(map(len, row)) for row in ROWS), dtype=torch.long)
    expected = alone(network)
    assert abs(together(network, use_cache=False, attention_mask=ones) - expected) > 1e-3
    assert abs(together(network, use_cache=True) - expected) > 1e-3


@pytest.mark.parametrize(("kind", "apart"), [("llama", True), ("gpt2", True), ("bloom", False)])
def test_whether_a_network_keeps_packed_examples_apart_is_tried_out(kind, apart):
    network = tiny.network(kind)
    network.config.use_cache = False
    assert keeps_apart(network) is apart


def test_a_network_left_with_its_cache_is_found_out():
    assert keeps_apart(tiny.network("llama")) is False


@torch.no_grad()
def test_unpacked_rows_give_the_same_loss_to_a_network_that_cannot_pack():
    network = tiny.network("bloom")
    dataset = PackedRows([RowExamples(0, (*ROWS[0], *ROWS[1]))], [[0]], 64, packed=False, multiple=3)
    batch = collate(dataset.rows, packed=False)
    labels = batch.pop("labels")
    assert token_mean(network(**batch, use_cache=False), labels).item() == pytest.approx(alone(network), abs=1e-5)


def test_padding_and_first_tokens_have_no_label():
    batch = collate(ROWS, packed=True)
    assert batch["labels"][1, 20:].tolist() == [IGNORED] * 9
    assert [batch["labels"][0, i].item() for i in (0, 9, 23)] == [IGNORED] * 3
    assert (batch["labels"] != IGNORED).sum() == 8 + 11 + 5 + 19


def test_tokens_without_loss_have_no_label():
    assert collate(ROWS, packed=True)["labels"][0, 9 + 3 : 9 + 5].tolist() == [IGNORED] * 2


def test_every_update_has_the_same_number_of_rows_whatever_it_holds():
    prepared = [RowExamples(i, (example(length),)) for i, length in enumerate([30, 30, 30, 4, 4, 4])]
    dataset = PackedRows(prepared, [[0, 1, 2], [3, 4, 5]], 32, packed=True, multiple=2)
    assert dataset.rows_per_step == 4
    assert [len(row) for row in dataset.rows] == [1, 1, 1, 0, 3, 0, 0, 0]


@torch.no_grad()
def test_an_update_of_empty_rows_costs_nothing_and_is_a_number():
    network = tiny.network("llama")
    for packed in (True, False):
        batch = collate([(), ()], packed=packed)
        labels = batch.pop("labels")
        assert token_mean(network(**batch, use_cache=False), labels, torch.tensor(5)).item() == 0.0
