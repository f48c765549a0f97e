"""What an attacker, a broken client and a bad day send to a wok server, while a well-behaved stream
runs beside it and must not notice.

    python hostile.py WOK MODEL

Standard library only. Prints one line a check; exit code 0 when all held.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from server import Server

WOK, MODEL = sys.argv[1], sys.argv[2]
CHAT = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0}


def post(port: int, path: str, body: bytes, headers: dict[str, str] | None = None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, body, {"Content-Type": "application/json", **(headers or {})})
    reply = connection.getresponse()
    data = reply.read()
    connection.close()
    return reply.status, data


def get(port: int, path: str):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    reply = connection.getresponse()
    data = reply.read()
    connection.close()
    return reply.status, data.decode()


def metric(port: int, name: str, **labels: str) -> float:
    total = 0.0
    for line in get(port, "/metrics")[1].splitlines():
        key, _, value = line.rpartition(" ")
        if key.split("{")[0] == name and all(f'{k}="{v}"' in key for k, v in labels.items()):
            total += float(value)
    return total


def refused(port: int, body: object, status: int, *words: str, path="/v1/chat/completions") -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    got, data = post(port, path, raw)
    assert got == status, (got, data[:300])
    error = json.loads(data)["error"]
    assert set(error) >= {"message", "type", "param", "code"}, error
    for word in words:
        assert word in error["message"], (word, error)


def bad_bodies(port: int) -> None:
    refused(port, b"{not json", 400)
    refused(port, b"", 400)
    refused(port, b"[" * 100_000, 400)
    refused(port, b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}', 400)
    refused(port, [], 400)
    refused(port, {**CHAT, "messages": "hi"}, 400, "messages")
    refused(port, {**CHAT, "messages": []}, 400, "messages")
    refused(port, {**CHAT, "temperature": "warm"}, 400, "temperature")
    refused(port, {**CHAT, "temperature": 1e9}, 400, "temperature")
    refused(port, {**CHAT, "top_p": -1}, 400, "top_p")
    refused(port, {**CHAT, "n": 10_000}, 400, "n")
    refused(port, {**CHAT, "logit_bias": {"99999999": 1}}, 400, "logit_bias")
    refused(port, {**CHAT, "stop": [str(i) for i in range(1000)]}, 400, "stop")
    refused(port, {**CHAT, "stop": [""]}, 400, "stop")
    refused(port, {**CHAT, "model": "../../etc/passwd"}, 404, MODEL)
    refused(port, {**CHAT, "response_format": {"type": "json_object"}}, 400, "response_format")
    refused(port, {**CHAT, "no_such_parameter": 1}, 400, "no_such_parameter")
    refused(port, {"prompt": [-1], "max_tokens": 1}, 400, path="/v1/completions")
    refused(port, {"prompt": [10**9], "max_tokens": 1}, 400, path="/v1/completions")


def too_long(port: int) -> None:
    refused(port, {**CHAT, "max_tokens": 10**9}, 400)
    refused(port, {"prompt": "word " * 20_000, "max_tokens": 5}, 400, "n_prompt", "n_ctx",
            path="/v1/completions")


def bad_http(port: int) -> None:
    for raw in (
        b"\x00" * 1000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 999999999999\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
            try:
                s.sendall(raw)
                reply = s.recv(100)
            except (ConnectionResetError, BrokenPipeError):
                continue
            assert reply == b"" or reply.startswith(b"HTTP/1.1 4"), reply
    assert get(port, "/../../etc/passwd")[0] == 404
    assert post(port, "/health", b"")[0] == 405


def half_open(port: int) -> list[socket.socket]:
    sockets = []
    for _ in range(50):
        s = socket.create_connection(("127.0.0.1", port), timeout=30)
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        sockets.append(s)
    return sockets


def disconnects(port: int) -> None:
    body = json.dumps({**CHAT, "max_tokens": 4000, "ignore_eos": True, "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    before = metric(port, "wok_request_success_total", finished_reason="abort")
    for _ in range(8):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
            s.sendall(head.encode() + body)
            s.recv(200)
    deadline = time.monotonic() + 30
    while metric(port, "wok_request_success_total", finished_reason="abort") < before + 8:
        assert time.monotonic() < deadline, "disconnected requests still run"
        time.sleep(0.1)


def well_behaved(port: int, out: list[str], stop: threading.Event) -> None:
    while not stop.is_set() or len(out) < 5:
        status, data = post(port, "/v1/chat/completions", json.dumps(CHAT).encode())
        text = json.loads(data)["choices"][0]["message"]["content"] if status == 200 else ""
        out.append(text)


def pool_sums_up(port: int) -> None:
    deadline = time.monotonic() + 30
    while metric(port, "vllm:num_requests_running") > 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    pages = {s: metric(port, "wok_kv_pages", state=s) for s in ("free", "cached", "held")}
    total = metric(port, "wok_kv_pages", state="total") or sum(pages.values())
    assert pages["held"] == 0 and sum(pages.values()) == total > 0, pages


def port_in_use(port: int) -> None:
    done = subprocess.run([WOK, "serve", MODEL, "--port", str(port)], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 1 and str(port) in done.stderr, (done.returncode, done.stderr)


def no_memory() -> None:
    done = subprocess.run([WOK, "serve", MODEL, "--port", "0", "--kv-memory", "1M"],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "--kv-memory" in done.stderr, (done.returncode, done.stderr)


def killed_and_started_again() -> None:
    """kill -9 inside a request, and inside the packing of weights."""
    server = Server(WOK, MODEL)
    body = json.dumps({**CHAT, "max_tokens": 4000, "ignore_eos": True, "stream": True}).encode()
    s = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
              % (len(body), body))
    s.recv(200)
    server.kill()
    s.close()
    with Server(WOK, MODEL) as again:
        assert post(again.port, "/v1/chat/completions", json.dumps(CHAT).encode())[0] == 200


def killed_while_packing() -> None:
    shown = subprocess.run([WOK, "show", MODEL], capture_output=True, text=True, check=True).stdout
    source = shown.splitlines()[0].removeprefix("file").strip()
    with tempfile.TemporaryDirectory() as cache:
        model = os.path.join(cache, "copy.gguf")
        shutil.copyfile(source, model)
        env = {**os.environ, "WOK_CACHE_DIR": cache}
        want = None
        for delay in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5):
            process = subprocess.Popen([WOK, "serve", model, "--port", "0"], env=env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.kill()
            process.wait()
        for _ in range(2):  # packs what is missing, then maps what is there
            with Server(WOK, model, env={"WOK_CACHE_DIR": cache}) as server:
                status, data = post(server.port, "/v1/chat/completions", json.dumps(CHAT).encode())
                assert status == 200, data
                text = json.loads(data)["choices"][0]["message"]["content"]
                want = want or text
                assert text == want


def main() -> int:
    with Server(WOK, MODEL) as server:
        port = server.port
        texts: list[str] = []
        stop = threading.Event()
        friend = threading.Thread(target=well_behaved, args=(port, texts, stop))
        friend.start()
        held = half_open(port)
        for check in (bad_bodies, too_long, bad_http, disconnects, port_in_use):
            check(port)
            print(f"ok {check.__name__}")
        assert get(port, "/health")[0] == 200
        stop.set()
        friend.join()
        assert len(texts) > 1 and texts[0] and set(texts) == {texts[0]}, set(texts)
        print(f"ok undisturbed ({len(texts)} equal answers beside it)")
        for s in held:
            s.close()
        pool_sums_up(port)
        print("ok pool_sums_up")
    for check in (no_memory, killed_and_started_again, killed_while_packing):
        check()
        print(f"ok {check.__name__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
