"""The page in a real browser: what a model wrote stays text, and only what was in view to its end is approved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from test_approvals import ANN, HIDDEN, Door, door

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

MARKUP = (
    "<img src=/x onerror=\"document.title='taken'\"><script>document.title='taken'</script>![x](http://evil.example)"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        made = Browser(tmp_path_factory.mktemp("profile"))
    except OSError as error:
        pytest.skip(f"Chromium does not start here: {error}")
    yield made
    made.close()


@pytest.fixture
def at() -> Iterator[Door]:
    with door() as made:
        yield made


def opened(browser: Browser, at: Door) -> None:
    browser.open(f"http://{at.host}/#{ANN}")
    browser.until("document.querySelectorAll('article').length")


def click(browser: Browser, button: str) -> None:
    browser.value(f"document.querySelector('.{button}').click()")


@pytest.mark.case("G7")
def test_a_long_call_can_be_approved_only_once_its_end_was_in_view(browser: Browser, at: Door) -> None:
    asked = at.ask(to="bob", text=HIDDEN).approval
    opened(browser, at)
    closed = "document.querySelector('.approve').disabled"
    assert browser.value(closed) is True
    click(browser, "look")
    assert browser.until("!document.querySelector('.shown').hidden")
    shown = browser.value("document.querySelector('.shown').firstChild.data")
    assert shown == at.approvals.get(asked).shown
    for _ in range(5):
        browser.value("new Promise((done) => requestAnimationFrame(done))")
    assert browser.value(closed) is True, "only its beginning was in view"
    click(browser, "approve")
    assert at.approvals.get(asked).state == "pending"
    browser.value("document.querySelector('.shown').lastChild.scrollIntoView()")
    assert browser.until("!document.querySelector('.approve').disabled")
    click(browser, "approve")
    assert browser.until("document.querySelector('.said').textContent") == "You approved it."
    assert at.approvals.get(asked).decided_by == "Ann"


def test_a_call_is_rejected_without_being_looked_at(browser: Browser, at: Door) -> None:
    asked = at.ask(to="bob").approval
    opened(browser, at)
    click(browser, "reject")
    assert browser.until("document.querySelector('.said').textContent") == "You rejected it."
    assert at.approvals.get(asked).state == "rejected"


@pytest.mark.case("C10")
def test_markup_in_a_call_is_text_and_nothing_is_fetched_from_elsewhere(browser: Browser, at: Door) -> None:
    at.ask(f"c{MARKUP}", who=MARKUP, run=MARKUP, to=MARKUP, text=MARKUP)
    browser.requested.clear()
    opened(browser, at)
    click(browser, "look")
    assert browser.until("!document.querySelector('.shown').hidden")
    assert browser.value("document.querySelectorAll('article img, article script').length") == 0
    assert MARKUP in browser.value("document.querySelector('.what').textContent")
    assert browser.value("document.title") == "1 wait for Ann"
    assert browser.requested
    assert all(url.startswith(f"http://{at.host}/") for url in browser.requested)
    assert f"http://{at.host}/x" not in browser.requested


def test_the_token_leaves_the_address_and_a_wrong_one_is_asked_for_again(browser: Browser, at: Door) -> None:
    at.ask(to="bob")
    opened(browser, at)
    assert browser.value("location.href") == f"http://{at.host}/"
    browser.open("about:blank")
    browser.open(f"http://{at.host}/#wrong")
    assert browser.until("!document.getElementById('enter').hidden")
    assert "denied" in browser.value("document.getElementById('state').textContent")
    browser.value(f"document.getElementById('token').value = '{ANN}'")
    browser.value("document.getElementById('use').click()")
    assert browser.until("document.querySelectorAll('article').length") == 1
    assert browser.value("document.getElementById('token').value") == ""


@pytest.mark.case("L2")
def test_another_page_cannot_frame_it(browser: Browser, at: Door, tmp_path: Path) -> None:
    (tmp_path / "frame.html").write_text(f'<iframe src="http://{at.host}/"></iframe>')
    browser.open((tmp_path / "frame.html").as_uri())
    assert browser.until("document.querySelector('iframe') && document.readyState === 'complete'")
    assert browser.framed("location.protocol") == "chrome-error:", "an error stands in its place"
