"""Pulls from imitations of the hubs by the whole program: pulled, shown, run, killed, removed.

    python pull.py WOK

A store of its own, models from tests/golden, everything on loopback. Standard library only.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

WOK = sys.argv[1]
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
MODEL = (GOLDEN / "tiny_llama.gguf").read_bytes()
SUM = hashlib.sha256(MODEL).hexdigest()
on_file = None  # called when a file's bytes are asked for


class Hub(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # noqa: N802
        path = self.path
        if path == "/api/models/org/tiny/revision/main":
            self.answer(json.dumps({"sha": "c0ffee", "cardData": {"license": "mit"}}).encode())
        elif path.startswith("/api/models/org/tiny/tree/c0ffee"):
            lfs = {"oid": SUM, "size": len(MODEL), "pointerSize": 1}
            self.answer(json.dumps([{"type": "file", "path": "tiny-F32.gguf", "oid": "0",
                                     "size": len(MODEL), "lfs": lfs}]).encode())
        elif path == "/v2/library/tiny/manifests/q4_K_M":
            self.answer(json.dumps({"layers": [
                {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{SUM}",
                 "size": len(MODEL)}]}).encode())
        elif path in ("/org/tiny/resolve/c0ffee/tiny-F32.gguf",
                      f"/v2/library/tiny/blobs/sha256:{SUM}"):
            self.file()
        else:
            self.send_error(404)

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def file(self) -> None:
        asked = self.headers.get("Range", "")
        begin = int(asked.removeprefix("bytes=").split("-")[0]) if asked else 0
        if on_file is not None and on_file(self, begin):
            return
        if begin:
            self.answer(MODEL[begin:], 206,
                        Content_Range=f"bytes {begin}-{len(MODEL) - 1}/{len(MODEL)}")
        else:
            self.answer(MODEL)

    def log_message(self, *_arguments) -> None:
        pass


class Store:
    def __init__(self, folder: str, port: int) -> None:
        self.folder = pathlib.Path(folder)
        address = f"http://127.0.0.1:{port}"
        self.env = {**os.environ, "WOK_CACHE_DIR": folder, "HF_ENDPOINT": address,
                    "OLLAMA_REGISTRY": address, "no_proxy": "127.0.0.1"}

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen([WOK, *arguments], env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wok(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (arguments, process.returncode, out, err)
        return out, err

    def blobs(self) -> list[str]:
        folder = self.folder / "blobs"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def stopped_and_gone_on_with(store: Store) -> None:
    """Half of the file, then a signal; the next pull asks for the other half."""
    global on_file
    half = len(MODEL) // 2
    for number, code in ((signal.SIGKILL, -9), (signal.SIGINT, 130)):
        came = threading.Event()

        def stall(hub: Hub, begin: int) -> bool:
            hub.send_response(206 if begin else 200)
            if begin:
                hub.send_header("Content-Range", f"bytes {begin}-{len(MODEL) - 1}/{len(MODEL)}")
            hub.send_header("Content-Length", str(len(MODEL) - begin))
            hub.end_headers()
            hub.wfile.write(MODEL[begin:half])
            hub.wfile.flush()
            came.set()
            ended.wait(60)
            return True

        ended, on_file = threading.Event(), stall
        process = store.start("pull", "hf:org/tiny")
        assert came.wait(60)
        partial = store.folder / "tmp/partial" / f"{SUM}.part.done"
        while not partial.exists() or int.from_bytes(partial.read_bytes(), "little") < half:
            pass
        process.send_signal(number)
        process.communicate(timeout=60)
        ended.set()
        assert process.returncode == code, process.returncode
        assert not store.blobs() and not store.wok("list", "--names")[0]
    begins = []
    on_file = lambda _hub, begin: begins.append(begin)  # noqa: E731
    store.wok("pull", "hf:org/tiny")
    assert begins == [half], begins
    on_file = None


def shown_and_run(store: Store) -> None:
    assert store.wok("list", "--names")[0] == "hf:org/tiny\n"
    assert "mit" in store.wok("list")[0]
    assert f"sha256-{SUM}" in store.wok("show", "hf:org/tiny")[0]
    assert "already" in store.wok("pull", "hf:org/tiny")[1]


def pulled_by_run(store: Store) -> None:
    answer, said = store.wok("run", "tiny:q4_K_M", "Hi", "--max-tokens", "2")
    assert answer.strip() and "tiny:q4_K_M is not here yet" in said, (answer, said)
    assert store.wok("list", "--names")[0] == "hf:org/tiny\ntiny:q4_K_M\n"
    assert store.blobs() == [f"sha256-{SUM}"]


def removed(store: Store) -> None:
    store.wok("rm", "hf:org/tiny")
    assert store.blobs() == [f"sha256-{SUM}"]
    store.wok("rm", "ollama:tiny:q4_K_M")
    assert not store.blobs()


def main() -> int:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder, server.server_address[1])
        for check in (stopped_and_gone_on_with, shown_and_run, pulled_by_run, removed):
            check(store)
            print(f"ok {check.__name__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
