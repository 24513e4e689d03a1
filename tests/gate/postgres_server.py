"""A PostgreSQL server of our own, from the system's packages: a folder in /tmp, one Unix socket, nobody's network.

The disk is not waited for, unless a test starts it anew with other settings: clients that die lose nothing by it.
"""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

# A keeper that is nobody's child here (tests count theirs): it ends the server when this process does, however it does.
_KEEP = ["setsid", "--fork", "sh", "-c", '"$@" & read _; kill -QUIT $!; wait', "keeper"]
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "200",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}


def programs() -> Path:
    """The folder with `initdb` and `postgres`; the test is skipped where there is none, but not on CI."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    if found or on_path:
        return (found[-1] if found else Path(on_path or "").resolve()).parent
    missing = "no PostgreSQL server is installed (Debian: apt-get install postgresql)"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


class Server:
    def __init__(self) -> None:
        self._programs = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="toolwise-pg-", dir="/tmp"))
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:  # which PostgreSQL refuses to run as
            user = pwd.getpwnam("nobody")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        made = ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username=toolwise"]
        self._run("initdb", *made, f"--pgdata={self.folder / 'data'}")
        self._schemas = itertools.count(1)
        self.start()

    def start(self, **settings: str) -> None:
        given = [f"--{name}={value}" for name, value in (_SETTINGS | settings).items()]
        place = ["-D", str(self.folder / "data"), "-k", str(self.folder)]
        self._keeper = subprocess.Popen(
            [*_KEEP, self._programs / "postgres", *place, *given],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(self.folder / "log").open("a"),
            **self._as,
        )
        self._keeper.wait(30)
        for _ in range(500):
            if self._run("pg_isready", "-q", "-h", str(self.folder), check=False) == 0:
                return
            time.sleep(0.02)
        pytest.fail(f"the PostgreSQL server does not start: {(self.folder / 'log').read_text()}")

    def crash(self) -> None:
        """All its processes end where they are: nothing more is written, and the next start has to recover."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        assert self._keeper.stdout.read() == b"", "ends with the last process that could still write there"
        self._keeper.stdout.close()

    def address(self) -> str:
        """Where a state is that nobody has used."""
        schema = f"test{next(self._schemas)}"
        self.sql(f"CREATE SCHEMA {schema}")
        return f"postgresql+psycopg://toolwise@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def sql(self, statement: str) -> None:
        """Run it as an administrator."""
        import psycopg

        with psycopg.connect(host=str(self.folder), user="toolwise", dbname="postgres", autocommit=True) as connection:
            connection.execute(statement)

    def drop_connections(self) -> None:
        """Everybody's but the administrator's, as when the network fails."""
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    def close(self) -> None:
        self.crash()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": self.folder} | self._as
        return subprocess.run([self._programs / program, *arguments], check=check, timeout=60, **quiet).returncode
