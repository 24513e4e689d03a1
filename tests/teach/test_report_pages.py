"""The report as people see it: what is said, and that no text from outside can act on a terminal or a page."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_runs import dropped, not_tried, passage, scored, write_run
from report_runs import settings as run_settings
from rich.console import Console

from toolwise.teach.config import Control
from toolwise.teach.report import Report, render_html, render_terminal, summarise
from toolwise.teach.report.words import threshold_of, visible

BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
# One of each kind: markup of a page, markup of rich, a terminal's escape, a turned reading direction, mathematics.
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[red]not red[/red] [/] :smile:",
    "\x1b[2J\x1b]0;title\x07 \x9b31m \x00 \r \b",
    f"{BIDI} txt.exe",
    "</bdi></td></table></main>&lt;b&gt; ' \" $\\frac{1}{2}$",
    "\u2028line\u2029 \ufeff \U000e0041",
]


def report_with(folder: Path, text: str) -> Report:
    """A report in which the text stands wherever a document, a model or a tool can put one."""
    hostile = f"24 {text} and 18, so {text} 42 {text} sacks"
    at = hostile.index(" 42")
    rows = [
        *(scored(n, 1 + n / 9, offset=at, body=f"Calculator({text})", result=text, proposer=text) for n in range(12)),
        dropped(12, "unclosed", offset=at, body=f"Calculator({text}", proposer=text),
        dropped(13, f"of another version {text}", offset=at),
        not_tried(14),
    ]
    return summarise(write_run(folder, [([passage(n, hostile) for n in range(15)], rows)], run_settings()))


def printed(report: Report, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor")
    console.print(render_terminal(report))
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def without_styles(output: str) -> str:
    """Without the only sequences that rich itself writes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", output)


def squeezed(text: str) -> str:
    """Without white space, which a table may have put anywhere."""
    return "".join(text.split())


class Page(HTMLParser):
    """The elements, attributes and text of a page, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text_in_the_page(tmp_path: Path, text: str) -> None:
    page = Page(render_html(report_with(tmp_path / "hostile", text)))
    plain = Page(render_html(report_with(tmp_path / "plain", "harmless")))
    assert page.tags == plain.tags
    assert page.open == []
    assert visible(text) in page.text
    assert sorted({name for name, _ in page.attributes}) == sorted({name for name, _ in plain.attributes})


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_only_text_in_the_terminal(tmp_path: Path, text: str) -> None:
    shown = without_styles(printed(report_with(tmp_path, text)))
    assert all(character.isprintable() or character == "\n" for character in shown)
    assert squeezed(visible(text)) in squeezed(shown)


def test_no_script_no_request_and_no_frame_can_come_of_the_page(tmp_path: Path) -> None:
    page = Page(render_html(report_with(tmp_path, "url(https://example.org) @import")))
    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "a"}
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href")]
    targets = [value for name, value in page.attributes if name == "xlink:href"]
    assert all(value is not None and value.startswith("#") for value in targets)
    policies = [value for name, value in page.attributes if name == "content" and value and "default-src" in value]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]


def test_drawings_adapt_to_light_and_dark_and_refer_only_to_themselves(tmp_path: Path) -> None:
    page = render_html(report_with(tmp_path, "harmless"))
    drawings = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    assert len(drawings) == 2
    for drawing in drawings:
        assert "var(--kept)" in drawing
        assert not re.search(r"#[0-9a-fA-F]{6}\b", drawing)
        assert set(re.findall(r'(?:url\(#|xlink:href="#)([^)"]+)', drawing)) <= set(
            re.findall(r' id="([^"]+)"', drawing)
        )
    assert "prefers-color-scheme: dark" in page


def test_the_same_report_gives_the_same_page(tmp_path: Path) -> None:
    report = report_with(tmp_path, "harmless")
    assert render_html(report) == render_html(report)


def test_kept_calls_stand_in_their_sentence_in_both(tmp_path: Path) -> None:
    write_run(tmp_path, [([passage(n) for n in range(3)], [scored(n, 0.9) for n in range(3)])], run_settings())
    report = summarise(tmp_path)
    page, shown = Page(render_html(report)).text, squeezed(without_styles(printed(report)))
    assert "so the carter drove [Calculator(24 + 18) -> 42] 42 sacks to the harbour." in page
    assert squeezed("[Calculator(24 + 18) -> 42]") in shown
    for number in ("+0.90", "-0.10", "3.00", "2.80", "1.90"):
        assert number in page
        assert number in shown


def test_a_partial_run_is_marked_in_both(tmp_path: Path) -> None:
    work = [([passage(n)], [scored(n, 1.0)]) for n in range(4)]
    report = summarise(write_run(tmp_path, work, run_settings(), scored_shards=1))
    assert "Partial: 1 of 4 passages are annotated so far" in Page(render_html(report)).text
    assert "partial: 1 of 4 passages are annotated so far" in without_styles(printed(report))


@pytest.mark.parametrize("rows", [[], [not_tried(0)], [dropped(0, "unparsable")], [scored(0, 0.1)]])
def test_a_run_that_kept_nothing_reads_well_in_both(tmp_path: Path, rows: list) -> None:  # type: ignore[type-arg]
    report = summarise(write_run(tmp_path, [([passage(0)], rows)], run_settings()))
    page, shown = Page(render_html(report)), without_styles(printed(report))
    assert page.open == []
    assert "No call was kept." in page.text
    assert squeezed(report.tools[0].notes[0]) in squeezed(page.text)
    assert squeezed(report.tools[0].notes[0]) in squeezed(shown)
    for text in (page.text, shown):
        assert not re.search(r"\b(nan|inf|None)\b", text)


def test_the_terminal_keeps_to_its_width(tmp_path: Path) -> None:
    shown = without_styles(printed(report_with(tmp_path, "sacks of flour " * 30)))
    assert max(map(len, shown.splitlines())) <= 100


@settings(max_examples=200)
@given(st.text())
def test_visible_text_acts_on_nothing_and_stays_on_one_line(text: str) -> None:
    shown = visible(text)
    assert all(character.isprintable() or character in "\u200c\u200d" for character in shown)
    assert not set(shown) & set(BIDI)
    assert len(visible(text, 10)) <= len(shown) + 1


def test_visible_text_keeps_what_can_be_read() -> None:
    for text in ("naïve café", "日本語", "שלום", "👩‍🔬", "می‌خواهم"):
        assert visible(text) == text
    assert visible("a\nb\tc\u00a0d\x1b[31m", 30) == "a↵b\\tc d\\x1b[31m"
    assert visible("abcdef", 3) == "abc…"


@pytest.mark.parametrize(
    ("tau_f", "controls", "said"),
    [
        (0.5, 10, "this number was given. 0 of 10 control calls pass"),
        (Control(alpha=0.1, floor=0.2), 10, "the lowest that is allowed, and enough: at most 10.0%"),
        (
            Control(alpha=0.1, floor=0.001),
            10,
            "this was measured: at most 10.0% of the control calls may pass. 1 of 10",
        ),
        (Control(alpha=0.1), 0, "No threshold could be measured"),
    ],
)
def test_how_a_threshold_came_about_is_said(tmp_path: Path, tau_f: float | Control, controls: int, said: str) -> None:
    rows = [scored(n, 1.0, n / 100 if controls else None) for n in range(10)]
    report = summarise(write_run(tmp_path, [([passage(n) for n in range(10)], rows)], run_settings(tau_f)))
    assert said in threshold_of(report.tools[0].threshold)
