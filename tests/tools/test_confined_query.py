"""SQL that a model wrote: it reads, its values are data, and it ends."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from toolwise.core.clock import FakeClock
from toolwise.core.errors import (
    BadInput,
    Corrupt,
    DeadlineExceeded,
    InvalidArguments,
    LimitExceeded,
    ToolwiseError,
    UnsafeTarget,
)
from toolwise.core.limits import LIMITS
from toolwise.tools.confined.query import Rows, safe_query

SMALL = replace(LIMITS, query_rows=3, query_bytes=100)
ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) "


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """People and their towns, in a file whose name would mean something in a URI."""
    file = tmp_path / "a b?mode=rwc&x#y%41.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE people (name TEXT, town TEXT, age INTEGER)")
        people = [("ann", "Oslo", 41), ("bob", "Bergen", 29), ("zoë", "Oslo", 35)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", people)
        connection.execute("CREATE VIEW grown AS SELECT name FROM people WHERE age > 30")
    connection.close()
    return file


def refused(database: Path, sql: str, kind: type[ToolwiseError], **settings: object) -> str:
    """What the error says: short, nothing of SQLite's own words, and nothing has changed."""
    before, beside = database.read_bytes(), sorted(database.parent.iterdir())
    with pytest.raises(kind) as caught:
        safe_query(database, sql, **settings)  # type: ignore[arg-type]
    assert type(caught.value) is kind
    assert (database.read_bytes(), sorted(database.parent.iterdir())) == (before, beside)
    assert len(str(caught.value)) < 150
    return str(caught.value)


# What is answered


def test_a_select_gives_its_columns_and_rows(database: Path) -> None:
    answer = safe_query(database, "SELECT name, age AS years FROM people WHERE town = ? ORDER BY age", ["Oslo"])
    assert answer == Rows(("name", "years"), (("zoë", 35), ("ann", 41)))
    assert safe_query(database, "SELECT 1 WHERE 0") == Rows(("1",), ())


@pytest.mark.parametrize(
    ("sql", "first"),
    [
        ("SELECT count(*), avg(age), group_concat(name) FROM people GROUP BY town ORDER BY 1", (1, 29.0, "bob")),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n", (15,)),
        ("SELECT name, rank() OVER (ORDER BY age DESC) FROM people", ("ann", 1)),
        ("SELECT * FROM grown ORDER BY name", ("ann",)),
        ("SELECT json_extract('{\"a\": [1, 2]}', '$.a[1]'), '[3]' -> 0", (2, "3")),
        ("SELECT strftime('%Y', '2023-01-30'), UPPER('a') || x'41', null, 2.5", ("2023", "AA", None, 2.5)),
        ("SELECT name FROM sqlite_schema WHERE type = 'table'", ("people",)),
        ("SELECT x'00ff', cast(x'ff41' AS text)", (b"\x00\xff", "\ufffdA")),
        ("VALUES (1)", (1,)),
        ("-- which\nSELECT a.name FROM people a JOIN people b ON a.town = b.town AND a.age < b.age;", ("zoë",)),
    ],
)
def test_what_queries_are_written_for_works(database: Path, sql: str, first: tuple[object, ...]) -> None:
    assert safe_query(database, sql).rows[0] == first


@pytest.mark.case("I11")
@pytest.mark.parametrize("text", ["'; DROP TABLE people;--", "' OR 1=1 --", '"', "\\", "%", "ann\0", "🎈", "' || x'"])
def test_a_value_is_data_whatever_it_looks_like(database: Path, text: str) -> None:
    assert safe_query(database, "SELECT count(*) FROM people WHERE name = ?", [text]).rows == ((0,),)
    assert safe_query(database, "SELECT :text, length(:text) > 0", {"text": text}).rows == ((text, 1),)


def test_a_database_in_use_is_read_as_it_is_now(database: Path) -> None:
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("INSERT INTO people VALUES ('kim', 'Bodø', 50)")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM people")
    try:
        assert safe_query(database, "SELECT count(*) FROM people").rows == ((4,),)
        writer.execute("COMMIT")
        assert safe_query(database, "SELECT count(*) FROM people").rows == ((0,),)
    finally:
        writer.close()


# What is refused


@pytest.mark.case("I11")
@pytest.mark.parametrize(
    "sql",
    [
        *("ATTACH DATABASE '/tmp/x' AS y", "ATTACH ':memory:' AS y", "DETACH main", "VACUUM", "VACUUM INTO 'copy'"),
        *("PRAGMA writable_schema = 1", "PRAGMA query_only = OFF", "PRAGMA table_info(people)", "pragma user_version"),
        *("DROP TABLE people", "DELETE FROM people", "UPDATE people SET age = 0", "DROP VIEW grown", "ANALYZE"),
        *("INSERT INTO people VALUES (1, 2, 3)", "INSERT INTO people VALUES (1, 2, 3) RETURNING name"),
        *("WITH x AS (SELECT 1) DELETE FROM people", "EXPLAIN DROP TABLE people", "CREATE TABLE t (a)"),
        *("CREATE TEMP TABLE t (a)", "CREATE VIEW v AS SELECT 1", "CREATE INDEX i ON people (age)", "COMMIT"),
        *("CREATE VIRTUAL TABLE v USING fts5(a)", "ALTER TABLE people RENAME TO p", "BEGIN IMMEDIATE", "SAVEPOINT s"),
        *("CREATE TRIGGER t AFTER INSERT ON people BEGIN SELECT 1; END", "SELECT fts3_tokenizer('x')"),
        *("SELECT load_extension('x.so')", "SELECT LOAD_EXTENSION('x.so')", "SELECT \"load_extension\"('x.so')"),
        *("SELECT * FROM pragma_table_info('people')", "SELECT * FROM pragma_database_list"),
        *("SELECT zeroblob(1000000000)", "SELECT randomblob(9)", "SELECT printf('%.*c', 1000000000, 'x')"),
        *("SELECT format('%1000000000d', 1)", "SELECT sqlite_version()", "SELECT last_insert_rowid()"),
        *("SELECT * FROM json_each('[1]')", "SELECT 1 FROM people WHERE (SELECT load_extension('x'))"),
    ],
)
def test_what_does_more_than_read_is_refused(database: Path, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(database.parent)
    assert "may only read" in refused(database, sql, UnsafeTarget)


@pytest.mark.case("I11")
def test_a_view_that_a_hostile_database_brings_along_calls_nothing(tmp_path: Path) -> None:
    file = tmp_path / "hostile.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("CREATE VIEW v AS SELECT load_extension('x.so') FROM sqlite_schema")
        connection.execute("CREATE VIEW w AS SELECT * FROM pragma_database_list")
    connection.close()
    for view in "vw":
        with pytest.raises((UnsafeTarget, InvalidArguments)):
            safe_query(file, f"SELECT * FROM {view}")


@pytest.mark.case("I11")
@pytest.mark.parametrize(
    "sql",
    [
        *("", ";", "-- nothing", "SELEC 1", "SELECT 1; DROP TABLE people", "SELECT nothing FROM people", "SELECT '"),
        *("SELECT * FROM no", "SELECT writefile('/tmp/x', 'y')", "SELECT readfile('/etc/passwd')", "SELECT ?"),
        *(
            "SELECT :a",
            "SELECT 1\0",
            "SELECT '\ud800'",
            ".shell id",
            "SELECT 1 REGEXP 2",
            "\\",
            "SELECT " + "(" * 2_000,
        ),
        "UPDATE sqlite_schema SET sql = ''",
    ],
)
def test_what_is_no_query_for_this_database_is_the_models_mistake(database: Path, sql: str) -> None:
    refused(database, sql, InvalidArguments)


@pytest.mark.parametrize("value", [2**63, -(2**70), "\ud800", [1], {"a": 1}, object(), 1j])
def test_a_value_that_sqlite_cannot_hold_is_the_models_mistake(database: Path, value: object) -> None:
    refused(database, "SELECT ?", InvalidArguments, parameters=[value])


def test_a_file_that_is_none_or_no_database_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        safe_query(tmp_path / "none.sqlite", "SELECT 1")
    assert not list(tmp_path.iterdir())
    (tmp_path / "text.sqlite").write_text("no database, but text that is long enough to look like one " * 20)
    with pytest.raises(Corrupt):
        safe_query(tmp_path / "text.sqlite", "SELECT * FROM sqlite_schema")


def test_a_database_that_is_locked_can_be_asked_again(database: Path) -> None:
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    try:
        error = refused(database, "SELECT * FROM people", DeadlineExceeded, limits=replace(LIMITS, query_seconds=0.1))
    finally:
        writer.close()
    assert "again later" in error
    assert DeadlineExceeded.retryable


# How much


@pytest.mark.parametrize(
    ("sql", "fits"),
    [
        ("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3", True),
        ("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4", False),
        (f"SELECT '{'x' * 50}', '{'x' * 50}'", True),
        (f"SELECT '{'x' * 50}', '{'x' * 51}'", False),
        (f"SELECT '{'ü' * 51}'", False),
        (f"SELECT x'{'00' * 101}'", False),
        ("SELECT 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13", False),
        (ENDLESS + "SELECT x FROM r", False),
    ],
)
def test_an_answer_is_whole_or_refused(database: Path, sql: str, fits: bool) -> None:
    if fits:
        assert safe_query(database, sql, limits=SMALL).rows
    else:
        assert "LIMIT" in refused(database, sql, LimitExceeded, limits=SMALL)


@pytest.mark.parametrize(
    "sql",
    [
        ENDLESS + "SELECT count(*) FROM r",
        "SELECT count(*) FROM people a, people b, people c, people d, people e, people f, people g, people h",
        ENDLESS + "SELECT x FROM r WHERE x < 0",
    ],
)
def test_a_query_without_an_end_stops_after_so_many_steps(database: Path, sql: str) -> None:
    assert "steps" in refused(database, sql, LimitExceeded, limits=replace(LIMITS, query_steps=5_000))


def test_a_query_without_an_end_stops_at_its_deadline(database: Path) -> None:
    class Running(FakeClock):
        def monotonic(self) -> float:
            self.advance(1.0)
            return super().monotonic()

    sql, clock = ENDLESS + "SELECT count(*) FROM r", Running(datetime(2024, 1, 1, tzinfo=UTC))
    assert "5 seconds" in refused(database, sql, DeadlineExceeded, clock=clock)
    started = time.monotonic()
    refused(database, sql, DeadlineExceeded, limits=replace(LIMITS, query_seconds=0.2, query_steps=10**12))
    assert time.monotonic() - started < 1.0


LONG = LIMITS.query_value_bytes


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(replace(hex(:a), '6', hex(:a)))",
        "SELECT length(group_concat(:a)) FROM people a, people b, people c",
        "SELECT json_group_array(:a) FROM people a, people b, people c",
        "SELECT " + " || ".join([":a"] * 9),
        f"SELECT :a, '{'x' * LIMITS.sql_bytes}'",
    ],
)
def test_no_value_grows_without_bound(database: Path, sql: str) -> None:
    refused(database, sql, LimitExceeded, parameters={"a": "a" * (LONG // 4)})


@pytest.fixture
def best_of() -> Callable[..., float]:
    """Processor seconds of the fastest of three: a busy machine is no failure."""

    def best(run: Callable[[], object]) -> float:
        taken = []
        for _ in range(3):
            started = time.process_time()
            run()
            taken.append(time.process_time() - started)
        return min(taken)

    return best


@pytest.mark.parametrize(
    ("sql", "text", "part"),
    [
        ("SELECT instr(:a, :b)", "a" * (LONG - 99), "a" * (LONG // 2) + "b"),
        ("SELECT length(replace(:a, :b, 'x'))", "a" * (LONG - 99), "a" * (LONG // 2) + "b"),
        ("SELECT length(trim(:a, :b))", "a" * (LONG - 99), "b" * 500 + "a"),
        ("SELECT :a LIKE :b", "a" * (LONG - 99), "%a_" * 33 + "b"),
        ("SELECT :a GLOB :b", "a" * (LONG - 99), "*[a-c]?" * 14 + "b"),
        ("SELECT json_valid(:a), :b", "[" * (LONG - 99), ""),
    ],
)
def test_no_usual_step_takes_long(
    database: Path, sql: str, text: str, part: str, best_of: Callable[..., float]
) -> None:
    assert best_of(lambda: safe_query(database, sql, {"a": text, "b": part})) < 1.0
