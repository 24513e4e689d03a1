"""Ten thousand clients at once ask a server for an endless stream; what they are told, and what it costs the server.

toolwise serve --model scripted --port 8126 &
python experiments/serve/connections.py 8126 $!
"""

from __future__ import annotations

import json
import resource
import socket
import sys
import time
import urllib.request
from collections import Counter
from contextlib import suppress

import psutil

CLIENTS = 10_000


def main(port: int, pid: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(CLIENTS + 100, hard), hard))
    server = psutil.Process(pid)
    said = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "pace 0.05\nlong 100000"}]}
    body = json.dumps(said).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    say(f"before: {megabytes(server)} MB")
    clients = []
    for _ in range(CLIENTS):
        client = socket.create_connection(("127.0.0.1", port), timeout=60)
        with suppress(OSError):  # it was told before it could ask
            client.sendall(request)
        clients.append(client)
    time.sleep(3)
    told: Counter[str] = Counter()
    for client in clients:
        client.setblocking(False)
        try:
            told[client.recv(12)[9:12].decode()] += 1
        except BlockingIOError:
            told["waits"] += 1
        except OSError:
            told["closed"] += 1
    say(f"{CLIENTS} clients: {dict(told)}, {megabytes(server)} MB")
    for client in clients:
        client.close()
    time.sleep(8)
    say(f"after: {megabytes(server)} MB")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    for line in lines:
        if line.startswith(("toolwise_places_taken", "toolwise_waiting")):
            say(line)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def megabytes(process: psutil.Process) -> int:
    return int(process.memory_info().rss) >> 20


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
