"""The page of an evaluation: whole, alike for alike reports, and no text from outside acts in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from eval_runs import experiment, row, settings, write
from toolwise.evals.compare import arms
from toolwise.evals.page import render_html
from toolwise.evals.report import as_json as report_json
from toolwise.evals.report import from_json, summarise
from toolwise.evals.tables import as_markdown
from toolwise.teach.report.words import visible

pytest.importorskip("matplotlib")

HOSTILE = [
    "<script>alert(1)</script>",
    "--></text></svg><img src=x onerror=alert(1)>",
    '$\\frac{1}{2}$ \' " id="a_1" #010101',
    "\x1b[2J\x07 \u202etxt\u2028",
    "</bdi></td></table></main>&lt;b&gt; | `",
]


class Page(HTMLParser):
    """The elements, attributes and text of a page, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_with(folder: Path, text: str) -> str:
    """A page in which the text stands wherever a model, a tool, a task or a folder can put one."""
    name = re.sub(r"[/\x00]", "_", text)[:40]
    more = {
        "prompt": f"How many {text}?",
        "written": f"{text} [Calculator(3 + 5) -> {text}] 8 {text}",
        "answers": [text],
    }
    call = {"body": f"Calculator({text})", "name": text, "result": text, "code": None, "at": 0}
    failed = {**call, "code": text}
    for k, label in ((0, "off"), (1, "k1"), (10, name)):
        rows = [row(n, (n > 1) == (k > 0), task=name, **more) for n in range(4)]
        calls = [[call], [failed], [call], []] if k else [[]] * 4
        begun = settings(text, {name: 4}, k)
        begun["tasks"][name] |= {"prompt": text, "rule": text}
        write(folder / label, [{**one, "calls": own} for one, own in zip(rows, calls, strict=True)], begun)
    return render_html(summarise(arms([folder])))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text_in_the_page(tmp_path: Path, text: str) -> None:
    page = Page(page_with(tmp_path / "hostile", text))
    plain = Page(page_with(tmp_path / "plain", "harmless"))
    assert page.tags == plain.tags
    assert page.attributes == plain.attributes
    assert page.open == []
    assert f"How many {visible(text)}?" in page.text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text_in_markdown(tmp_path: Path, text: str) -> None:
    page_with(tmp_path, text)
    shown = as_markdown(summarise(arms([tmp_path])))
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert (
        len(
            {
                line.replace("\\|", "").count("|")
                for line in shown.split("## Scores")[1].split("##")[0].splitlines()[4:-1]
            }
        )
        == 1
    )


def test_no_script_no_request_and_no_frame_can_come_of_the_page(tmp_path: Path) -> None:
    page = Page(page_with(tmp_path, "url(https://example.org) @import"))
    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "a"}
    assert not [name for name in page.attributes if name.startswith("on") or name in ("src", "href")]


def test_every_plot_is_there_where_there_is_something_to_plot(tmp_path: Path) -> None:
    experiment(tmp_path / "one", questions=12)
    experiment(tmp_path / "sizes", (100_000_000, 300_000_000), questions=12)
    labels = ["Scores of the arms", "Scores over the size", "Score and call rate", "Accuracy against cost"]
    for name, found in (("one", [1, 0, 1, 1]), ("sizes", [1, 1, 2, 1])):
        page = render_html(summarise(arms([tmp_path / name])))
        assert [page.count(f'aria-label="{label}') for label in labels] == found
        assert not re.search(r"#[0-9a-fA-F]{6}\b", "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)))


def test_the_same_report_gives_the_same_page_also_from_its_json(tmp_path: Path) -> None:
    experiment(tmp_path, questions=12)
    found = summarise(arms([tmp_path]))
    assert render_html(found) == render_html(found) == render_html(from_json(report_json(found)))


def test_a_run_of_one_arm_and_one_answer_has_a_page(tmp_path: Path) -> None:
    write(tmp_path / "tuned", [row(0, True)], settings())
    page = Page(render_html(summarise(arms([tmp_path]))))
    assert page.open == []
    assert "partial" in page.text
    assert not re.search(r"\b(nan|inf|None)\b", page.text.partition("All settings")[0])
