"""Bootstrap intervals, beside the slow and obvious way of drawing."""

from __future__ import annotations

import numpy as np
import pytest

from toolwise.evals.intervals import mean_interval, paired_interval


def drawn(values: list[float], samples: int = 4_000) -> tuple[float, float]:
    """Values drawn one by one, with repetition."""
    lot = np.random.default_rng(1)
    means = [lot.choice(values, len(values)).mean() for _ in range(samples)]
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


@pytest.mark.parametrize("values", [[1.0] * 12 + [0.0] * 38, [0.5, 2.0, 7.0, 7.0, 11.0, 1.5, 3.0, 4.0]])
def test_counts_of_values_give_what_values_drawn_one_by_one_give(values: list[float]) -> None:
    found = mean_interval(values)
    assert found is not None
    assert found.mean == pytest.approx(np.mean(values))
    low, high = drawn(values)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.06 * (high - low))


def test_an_interval_narrows_with_more_values_and_is_the_same_again() -> None:
    few, many = mean_interval([1, 0] * 10), mean_interval([True, False] * 500)
    assert few is not None
    assert many is not None
    assert few.low < many.low < 0.5 < many.high < few.high
    assert mean_interval([1, 0] * 10) == few


def test_values_that_are_alike_have_no_width_and_no_values_no_interval() -> None:
    alike = mean_interval([True] * 5)
    assert alike is not None
    assert (alike.mean, alike.low, alike.high) == (1.0, 1.0, 1.0)
    assert mean_interval([]) is None


def test_a_paired_difference_is_surer_than_two_shares() -> None:
    first = [question % 3 == 0 for question in range(300)]
    second = [right or question % 30 == 1 for question, right in enumerate(first)]
    pair, alone = paired_interval(first, second), mean_interval(second)
    assert pair is not None
    assert alone is not None
    assert pair.mean == pytest.approx(1 / 30)
    assert 0 < pair.low < pair.high < 0.1
    assert pair.high - pair.low < (alone.high - alone.low) / 2
