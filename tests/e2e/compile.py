"""Pack files from outside: made, found, checked, damaged, in nobody's way, removed.

    python compile.py WOK MODEL

Works on a copy of the model in a store of its own. Standard library only.
"""

from __future__ import annotations

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

WOK, MODEL = sys.argv[1], sys.argv[2]
ASK = ["run", MODEL, "Say hello.", "--max-tokens", "8", "--temperature", "0"]


class Cache:
    """A store with a copy of MODEL and no packs."""

    def __init__(self, folder: str) -> None:
        shown = subprocess.run([WOK, "show", MODEL], capture_output=True, text=True, check=True)
        blob = pathlib.Path(shown.stdout.splitlines()[0].removeprefix("file").strip())
        source = blob.parent.parent
        self.folder = pathlib.Path(folder)
        for kind, name in (("blobs", blob.name), ("models", f"{MODEL}.json")):
            (self.folder / kind).mkdir()
            shutil.copyfile(source / kind / name, self.folder / kind / name)
        self.packs = self.folder / "packs"

    def wok(self, *arguments: str, code: int = 0, **options) -> subprocess.CompletedProcess:
        env = {**os.environ, "WOK_CACHE_DIR": str(self.folder), **options.pop("env", {})}
        done = subprocess.run([WOK, *arguments], env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120, check=False, **options)
        assert done.returncode == code, (arguments, done)
        return done

    def files(self) -> list[pathlib.Path]:
        return sorted(self.packs.iterdir()) if self.packs.is_dir() else []

    def pack(self) -> pathlib.Path:
        (only,) = self.files()
        return only


def overwrite(path: pathlib.Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def made_once(cache: Cache) -> None:
    assert "no kernels yet" in cache.wok("show", MODEL).stdout
    assert "not compiled" in cache.wok("compile", MODEL, "--check", code=1).stderr
    assert not cache.files(), "checking made something"
    done = cache.wok("compile", MODEL)
    assert "GB/s" in done.stderr and done.stdout.strip() == str(cache.pack()), done
    first = cache.pack().stat().st_ino
    done = cache.wok("compile", MODEL)
    assert "already" in done.stderr and done.stdout.strip() == str(cache.pack()), done
    assert cache.pack().stat().st_ino == first
    cache.wok("compile", MODEL, "--force")
    assert cache.pack().stat().st_ino != first
    assert "every byte" in cache.wok("compile", MODEL, "--check").stderr
    assert str(cache.pack()) in cache.wok("show", MODEL).stdout
    inode = cache.pack().stat().st_ino
    cache.wok(*ASK)
    assert cache.pack().stat().st_ino == inode, "a start packed what was compiled"


def reference(cache: Cache) -> None:
    before = cache.files()
    assert "nothing to compile" in cache.wok("compile", MODEL, "--isa", "reference").stderr
    assert cache.files() == before


def damaged(cache: Cache) -> None:
    want = cache.wok(*ASK).stdout
    size = cache.pack().stat().st_size
    for damage, reason in (
        (lambda path: os.truncate(path, size // 2), "bytes, expected"),
        (lambda path: os.truncate(path, 0), "fewer than a header"),
        (lambda path: overwrite(path, 0, b"x" * 4096), "no pack file"),
        (lambda path: overwrite(path, 60, b"xx"), "header is damaged"),
        (lambda path: overwrite(path, 4096, bytes(size - 4096)), "not what was written"),
    ):
        damage(cache.pack())
        done = cache.wok("compile", MODEL, "--check", code=1)
        assert str(cache.pack()) in done.stderr and reason in done.stderr, done
        done = cache.wok(*ASK)
        assert done.stdout == want and reason in done.stderr and str(cache.pack()) in done.stderr
        done = cache.wok(*ASK)
        assert done.stdout == want and done.stderr.count("pack") == 0, done


def one_bit(cache: Cache) -> None:
    at = 4096 + 5_000_003
    with cache.pack().open("rb") as file:
        file.seek(at)
        byte = file.read(1)[0]
    overwrite(cache.pack(), at, bytes([byte ^ 1]))
    assert "checksum" in cache.wok("compile", MODEL, "--check", code=1).stderr
    overwrite(cache.pack(), at, bytes([byte]))
    cache.wok("compile", MODEL, "--check")


def cannot_be_kept(cache: Cache) -> None:
    want = cache.wok(*ASK).stdout
    shutil.rmtree(cache.packs)
    cache.packs.write_text("in the way")
    for reason in ("Not a directory", "remove what is in the way"):
        assert reason in cache.wok("compile", MODEL, code=1).stderr
        done = cache.wok(*ASK)
        assert done.stdout == want and reason in done.stderr, done
    cache.packs.unlink()
    limit = 10 << 20
    small = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))}
    assert "File too large" in cache.wok("compile", MODEL, code=1, **small).stderr
    done = cache.wok(*ASK, **small)
    assert done.stdout == want and "File too large" in done.stderr, done
    assert not cache.files(), cache.files()


def killed(cache: Cache) -> None:
    """kill -9 while the file is written, as often as it takes to leave a part of one."""
    env = {**os.environ, "WOK_CACHE_DIR": str(cache.folder)}
    for _ in range(20):
        process = subprocess.Popen([WOK, "compile", MODEL, "--force"], env=env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not any(p.suffix == ".part" for p in cache.files()):
            time.sleep(0.0005)
        process.kill()
        process.wait()
        if any(p.suffix == ".part" for p in cache.files()):
            break
    else:
        raise AssertionError("never caught it writing")
    cache.wok("compile", MODEL, "--force")
    assert [p.suffix for p in cache.files()] == [".pack"], cache.files()
    cache.wok("compile", MODEL, "--check")


def at_once(cache: Cache) -> None:
    env = {**os.environ, "WOK_CACHE_DIR": str(cache.folder)}
    running = [subprocess.Popen([WOK, "compile", MODEL, "--force"], env=env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
               for _ in range(3)]
    for process in running:
        said = process.communicate()[1]
        assert process.returncode == 0, said
    cache.wok("compile", MODEL, "--check")
    cache.pack()


def removed(cache: Cache) -> None:
    cache.pack()
    cache.wok("rm", MODEL)
    assert not cache.files() and not list((cache.folder / "blobs").iterdir())


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(folder)
        for check in (made_once, reference, damaged, one_bit, cannot_be_kept, killed, at_once,
                      removed):
            check(cache)
            print(f"ok {check.__name__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
