"""Sessions that share one cache and one forward pass say what each would say alone."""

from __future__ import annotations

import random
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from test_conformance import ARCHITECTURES, TOKENIZER, reference, tiny

from toolwise.core.clock import SystemClock
from toolwise.core.errors import BadInput, LimitExceeded
from toolwise.core.limits import LIMITS
from toolwise.models.conformance import conformance
from toolwise.models.pool import Pool

PACKED = [name for name in ARCHITECTURES if "bloom" not in name]
SMALL = replace(LIMITS, pooled_tokens=120, prefill_tokens=4, kept_contexts=2)
TEXT = "Head of the prompt.\nIn: 3 pens.\nOut: three pens cost 7 crowns"


class Pooled:
    """A model all of whose sessions come from one pool."""

    def __init__(self, model, limits=LIMITS):
        self.pool = Pool(model._net, limits=limits)
        self.session = self.pool.session
        self._model = model

    def __getattr__(self, name):
        return getattr(self._model, name)


@pytest.mark.parametrize("architecture", PACKED)
def test_a_pooled_model_keeps_every_promise(architecture):
    conformance(Pooled(tiny(architecture)), tolerance=1e-4)


def test_a_network_that_takes_no_masks_has_no_pool():
    assert tiny("bloom: ALiBi, which packed branches would break").pool() is None


@pytest.mark.parametrize("seed", range(12))
def test_sessions_that_come_go_rewind_and_fork_say_what_each_would_say_alone(seed):
    chance = random.Random(seed)
    model = tiny(chance.choice(PACKED))
    pool, plain = Pool(model._net, limits=SMALL), reference(model)
    sessions = []
    for _ in range(60):
        what = chance.random()
        if what < 0.25 and len(sessions) < 4:
            context = TOKENIZER.encode(TEXT[: chance.randint(1, 12)])
            sessions.append(pool.session(context))
        elif sessions and what < 0.35:
            sessions.append(chance.choice(sessions).fork())
            sessions = sessions[-4:]
        elif sessions and what < 0.45:
            session = sessions.pop(chance.randrange(len(sessions)))
            session.close()
        elif sessions and what < 0.6:
            session = chance.choice(sessions)
            session.rewind(chance.randint(1, len(session.ids)))
        elif sessions:
            session = chance.choice(sessions)
            session.feed(TOKENIZER.encode(TEXT[: chance.randint(0, 3)]))
            if len(session.ids) < 20:
                np.testing.assert_allclose(session.logits(), plain.session(session.ids).logits(), atol=2e-4)
    assert pool.columns <= SMALL.pooled_tokens


@pytest.mark.case("J6")
def test_logits_behind_forced_tokens_are_those_of_a_fresh_reading_at_every_place():
    model = tiny(PACKED[0])
    session = Pool(model._net).session(TOKENIZER.encode("It is ["))
    session.logits()
    for length in range(1, 20):
        session.feed(TOKENIZER.encode("Calculator(18 / 24) -> 0.75] of it")[length - 1 : length])
        fresh = Pool(model._net).session(session.ids)
        np.testing.assert_allclose(session.logits(), fresh.logits(), atol=1e-4)


def greedy(session, count=12):
    written = []
    for _ in range(count):
        written.append(int(session.logits().argmax()))
        session.feed(written[-1:])
    return written


@pytest.mark.case("J7")
@pytest.mark.parametrize("architecture", PACKED)
def test_eight_at_once_write_what_they_write_one_by_one(architecture):
    model = tiny(architecture)
    prompts = [TOKENIZER.encode(TEXT[at : at + 7 + 3 * at]) for at in range(8)]
    alone = [greedy(Pool(model._net).session(prompt)) for prompt in prompts]
    pool = Pool(model._net, limits=replace(LIMITS, prefill_tokens=5))
    before = model.usage.forwards
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda prompt: greedy(pool.session(prompt)), prompts))
    assert together == alone
    assert model.usage.forwards - before < 8 * 12  # some went together


def test_what_another_session_has_read_is_not_read_again():
    model = tiny(PACKED[0])
    pool = Pool(model._net)
    first = pool.session(TOKENIZER.encode(TEXT))
    first.logits()
    first.close()
    read = model.usage.positions
    second = pool.session(TOKENIZER.encode(TEXT + ", so"))
    second.logits()
    assert second.shared == len(TEXT)
    assert model.usage.positions - read == len(", so")


def test_nobody_learns_from_the_cache_what_somebody_else_asked():
    pool = Pool(tiny(PACKED[0])._net)
    context = TOKENIZER.encode(TEXT)
    anns = pool.session(context, "ann")
    anns.logits()
    assert pool.session(context, "bob").shared == 0  # while it is open
    branch = anns.fork()
    for session in (anns, branch):
        session.close()
    bobs = pool.session(context, "bob")
    bobs.logits()
    bobs.close()
    assert bobs.shared == pool.session(context).shared == 0  # and when it is kept
    assert pool.session(context, "ann").shared == pool.session(context, "bob").shared == len(TEXT) - 1


def test_where_the_room_is_taken_a_session_is_refused_and_those_that_are_there_go_on():
    pool = Pool(tiny(PACKED[0])._net, limits=SMALL)
    held = [pool.session(TOKENIZER.encode(letter * 50)) for letter in "ab"]
    for session in held:
        session.logits()
    with pytest.raises(LimitExceeded):
        pool.session(TOKENIZER.encode("c" * 50)).logits()
    for session in held:
        session.feed([1])
        assert np.isfinite(session.logits()).all()


def test_a_pass_that_fails_fails_for_its_sessions_alone(monkeypatch):
    model = tiny(PACKED[0])
    pool = Pool(model._net)
    session = pool.session(TOKENIZER.encode(TEXT))
    expected = Pool(model._net).session(TOKENIZER.encode(TEXT)).logits()
    with monkeypatch.context() as patched:
        layer = model._net.network.model.layers[1]
        patched.setattr(layer.self_attn, "forward", lambda *a, **k: 1 / 0)  # the first layer has written its keys
        with pytest.raises(ZeroDivisionError):
            session.logits()
    np.testing.assert_allclose(session.logits(), expected, atol=1e-5)


def test_a_session_that_is_longer_than_the_model_reads_is_refused_alone():
    model = tiny("gpt2: learned positions, tied heads")
    pool = Pool(model._net)
    fine = pool.session(TOKENIZER.encode("a" * 8))
    with pytest.raises(BadInput, match="at most 512"):
        pool.session(TOKENIZER.encode("b" * 513)).logits()
    assert np.isfinite(fine.logits()).all()


def ask_together(pool, sessions):
    """The logits of the first one, as if a thread for each of the others waited already."""
    pool._waiting += [session._line for session in sessions[1:]]
    return sessions[0].logits()


def test_one_pass_reads_a_bounded_number_of_tokens_however_many_wait(monkeypatch):
    pool = Pool(tiny(PACKED[0])._net, limits=replace(LIMITS, prefill_tokens=20))
    sessions = [pool.session(TOKENIZER.encode(prompt)) for prompt in ("a" * 40, "b" * 40, "c", "ddd")]
    sizes, forward = [], pool._net.forward
    monkeypatch.setattr(pool._net, "forward", lambda ids, *rest: sizes.append(ids.numel()) or forward(ids, *rest))
    ask_together(pool, sessions)
    assert sizes[:2] == [8 + 8 + 1 + 3, 20]  # the short ones are through at once
    assert max(sizes) <= 20


def test_a_thread_that_is_interrupted_leaves_those_who_wait_waiting(monkeypatch):
    pool = Pool(tiny(PACKED[0])._net)
    first, second = (pool.session(TOKENIZER.encode(letter * 5)) for letter in "ab")

    def interrupted(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(pool._net, "forward", interrupted)
        ask_together(pool, [first, second])
    assert pool._waiting == [second._line]


def test_a_session_that_asks_again_before_the_pass_is_over_is_read_once(monkeypatch):
    pool = Pool(tiny(PACKED[0])._net)
    first, second = (pool.session(TOKENIZER.encode(letter * 5)) for letter in "ab")
    a_pass = pool._pass

    def and_goes_on(*given):
        a_pass(*given)
        second.feed([1])  # its thread has the logits that it waited for, and the lock
        pool._waiting.append(second._line)

    with monkeypatch.context() as patched:
        patched.setattr(pool, "_pass", and_goes_on)
        ask_together(pool, [first, second])
    assert pool._waiting == [second._line]
    first.feed([2])
    first.logits()  # in one pass with the second one
    assert pool._waiting == []
    np.testing.assert_allclose(second.logits(), Pool(pool._net).session(second.ids).logits(), atol=1e-5)


def closed(pool, text):
    session = pool.session(TOKENIZER.encode(text))
    row = session.logits()
    session.close()
    return session.shared, weakref.ref(row if row.base is None else row.base)


def test_a_conversation_that_goes_on_takes_one_of_the_places_of_what_is_kept():
    pool = Pool(tiny(PACKED[0])._net, limits=replace(LIMITS, kept_contexts=2))
    closed(pool, "Another one.")
    for length in range(10, 30, 4):
        closed(pool, TEXT[:length])
    assert closed(pool, TEXT[:16])[0] == 15  # it begins like one that is kept, and is none more
    assert closed(pool, "Another one. Yes.")[0] == len("Another one.")


def test_what_is_kept_of_a_session_is_no_row_of_the_vocabulary():
    pool = Pool(tiny(PACKED[0])._net)
    _, rows = closed(pool, TEXT)
    assert rows() is None


def test_a_cache_that_could_not_be_moved_is_read_again(monkeypatch):
    pool = Pool(tiny(PACKED[0])._net, limits=replace(SMALL, prefill_tokens=60))
    gone, held = (pool.session(TOKENIZER.encode(letter * 50)) for letter in "ab")
    gone.logits()
    expected = held.logits()
    del gone
    more = pool.session(TOKENIZER.encode("c" * 50))
    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(pool._cache.layers[1], "select", lambda columns: 1 / 0)  # the first one has moved
        more.logits()
    assert np.isfinite(more.logits()).all()
    held.rewind(49)
    held.feed(TOKENIZER.encode("b"))
    np.testing.assert_allclose(held.logits(), expected, atol=1e-5)


def test_a_line_that_the_collector_had_taken_is_not_kept():
    pool = Pool(tiny(PACKED[0])._net)
    session = pool.session(TOKENIZER.encode(TEXT))
    session.logits()
    pool._lines.clear()  # as it does before a generator in a cycle of garbage closes its session
    session.close()
    assert closed(pool, TEXT)[0] == 0


class Slow(SystemClock):
    """A clock on which more time passes than on the machine's."""

    added = 0.0

    def monotonic(self):
        return super().monotonic() + self.added


def test_two_that_came_one_after_the_other_are_in_one_pass_from_then_on():
    """By a clock on which a pass takes long, so that each waits for the other until it is there."""
    model, clock, steps = tiny(PACKED[0]), Slow(), 20
    forward = model._net.forward

    def slow(*args):
        clock.added += 4.0
        return forward(*args)

    model._net.forward = slow
    pool = Pool(model._net, clock=clock)
    first, second = pool.session(TOKENIZER.encode("It")), pool.session(TOKENIZER.encode("In"))
    first.logits()
    before = model.usage.forwards

    def go(session):
        for _ in range(steps):
            session.feed(TOKENIZER.encode("x"))
            session.logits()

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(go, session) for session in (first, second)]:
            done.result(timeout=30)
    assert model.usage.forwards - before < 1.5 * steps  # one may be at it before the other has begun
