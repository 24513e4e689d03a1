"""The demo judges answers as a person would, and its settings stay within what they promise."""

import pytest

from toolwise.demo import Answer, demo_settings
from toolwise.teach.config import Control


@pytest.mark.parametrize(
    ("said", "wanted", "right"),
    [
        (" 414.", "414", True),
        (" 414 chairs.", "414", True),
        (" $1,296 each", "1296", True),
        (" 4144", "414", False),
        (" 20.25 kilograms", "20.2", False),
        (" 44.5", "44", False),
        (" 44. Then", "44", True),
        (" about 414", "414", False),
        (" Tuesday, November 11, 2014.", "Tuesday, November 11, 2014", True),
        (" Paris and stayed", "Paris", True),
        ("", "414", False),
    ],
)
def test_an_answer_is_right_when_it_begins_with_what_is_wanted(said, wanted, right):
    assert Answer(said, said, 0).right(wanted) == right


def test_the_demo_measures_its_threshold():
    assert all(isinstance(tool.tau_f, Control) for tool in demo_settings().tools.values())
