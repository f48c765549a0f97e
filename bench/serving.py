"""What many users at once see of a running wok server, with OpenAI's own client.

    python bench/serving.py build/release/wok MODEL [prefix|itl|waste|equal ...]

equal   16 concurrent seeded streams give what each gives alone
prefix  64 requests that share a system prompt of about 2,000 tokens, with and without prefix cache
itl     inter-token latency of four streams while a prompt of about 6,000 tokens is prefilled
waste   the KV waste metric while 16 chats of mixed length run

Starts its own servers on loopback. Prints figures; judges nothing. Needs tests/e2e/requirements.txt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import time
import urllib.request

import openai

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "e2e"))
from server import Server  # noqa: E402

WORDS = ("river stone market window garden engine letter morning silver bridge forest signal "
         "paper winter orange planet mirror harbor candle thunder").split()


def prose(words: int, seed: int) -> str:
    """Text that differs in every place for every seed."""
    pick = random.Random(seed)
    return " ".join(pick.choice(WORDS) for _ in range(words))


def client(server: Server) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=3600)


def served_model(server: Server) -> str:
    """The name that clients use, which is not the path a file is served from."""
    with urllib.request.urlopen(server.url + "/v1/models") as reply:
        return json.load(reply)["data"][0]["id"]


def metrics(server: Server) -> dict[str, float]:
    text = urllib.request.urlopen(server.url + "/metrics").read().decode()
    out: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            key, _, value = line.rpartition(" ")
            name = key.split("{")[0]
            state = [p for p in key.split(",") if "state=" in p]
            if name == "wok_kv_pages" and state:
                name += "." + state[0].split('"')[1]
            out[name] = out.get(name, 0.0) + float(value)
    return out


async def stream(api: openai.AsyncOpenAI, model: str, prompt: str, **members: object):
    """Text, times of its chunks and usage of one streamed chat."""
    system = members.pop("system", None)
    on_first = members.pop("on_first", lambda: None)
    messages = [{"role": "user", "content": prompt}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    times, text, usage = [], "", None
    reply = await api.chat.completions.create(
        model=model, messages=messages, stream=True, stream_options={"include_usage": True}, **members
    )
    async for chunk in reply:
        if chunk.choices:
            if not times:
                on_first()
            times.append(time.perf_counter())
            text += chunk.choices[0].delta.content or ""
        usage = chunk.usage or usage
    return text, times, usage


async def equal(server: Server, model: str) -> None:
    api = client(server)
    calls = [
        dict(prompt=f"Write about {WORDS[i]}. {prose(10 * i, i)}", seed=i, max_tokens=64, temperature=1.0)
        for i in range(16)
    ]
    alone = [(await stream(api, model, **dict(c)))[0] for c in calls]
    together = [r[0] for r in await asyncio.gather(*(stream(api, model, **dict(c)) for c in calls))]
    same = sum(a == b for a, b in zip(alone, together))
    print(f"equal: {same} of 16 concurrent streams equal what they give alone; "
          f"{len(set(alone))} different texts")


async def prefix(server: Server, model: str) -> float:
    api = client(server)
    system = prose(1980, 1)
    begin = time.perf_counter()
    replies = await asyncio.gather(
        *(stream(api, model, f"Question {i}: why?", system=system, seed=i, max_tokens=16,
                 extra_body={"ignore_eos": True}) for i in range(64))
    )
    seconds = time.perf_counter() - begin
    usages = [r[2] for r in replies]
    cached = sorted(u.prompt_tokens_details.cached_tokens for u in usages)
    prompt = statistics.median(u.prompt_tokens for u in usages)
    rate = sum(u.completion_tokens for u in usages) / seconds
    await asyncio.sleep(0.5)
    m = metrics(server)
    pages = {k: m.get(f"wok_kv_pages.{k}", 0) for k in ("free", "cached", "held")}
    print(f"prefix: 64 requests of {prompt:.0f} prompt tokens in {seconds:.1f} s, {rate:.1f} output "
          f"tokens/s; cached_tokens min {cached[0]} median {cached[32]} max {cached[-1]}; "
          f"pages {pages}, total {sum(pages.values()):.0f}")
    return rate


async def raw_stream(server: Server, model: str, prompt: str, tokens: int, seed: int) -> list[float]:
    """Times of a stream's chunks, read from the socket: a client that costs next to nothing, so that
    on a small machine it does not disturb what it measures."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": prompt}], "seed": seed,
                       "max_tokens": tokens, "ignore_eos": True, "stream": True}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: wok\r\nConnection: close\r\n"
                 b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    times = []
    while line := await reader.readline():
        if line.startswith(b"data: {"):
            times.append(time.perf_counter())
    writer.close()
    return times


def gaps_ms(times: list[float], begin: float, end: float) -> list[float]:
    return [1000 * (b - a) for a, b in zip(times, times[1:]) if begin <= b <= end]


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


async def user(server: Server, model: str, number: int, until: asyncio.Event) -> list[list[float]]:
    """One user: chats of 250 tokens one after the other, so that the streams' own depth stays the
    same from the undisturbed time to the end."""
    streams = []
    while not until.is_set():
        prompt = f"Tell a story about a {WORDS[number]}, number {len(streams)}."
        streams.append(await raw_stream(server, model, prompt, 250, number))
    return streams


async def poll_health(server: Server, until: asyncio.Event) -> list[tuple[float, float]]:
    """Time and answer time in ms of /health every 50 ms, from the socket for the same reason."""
    answers = []
    while not until.is_set():
        start = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: wok\r\nConnection: close\r\n\r\n")
        status = await reader.readline()
        if b" 200 " not in status:
            raise RuntimeError(f"/health said {status!r}")
        answers.append((start, 1000 * (time.perf_counter() - start)))
        writer.close()
        await asyncio.sleep(0.05)
    return answers


async def itl(server: Server, model: str) -> None:
    api = client(server)
    await stream(api, model, "Warm up.", max_tokens=32)
    end_users = asyncio.Event()
    users = [asyncio.create_task(user(server, model, i, end_users)) for i in range(4)]
    polls = asyncio.create_task(poll_health(server, end_users))
    await asyncio.sleep(10)
    begin = time.perf_counter()
    usage = (await stream(api, model, prose(5950, 99), max_tokens=1))[2]
    end = time.perf_counter()
    end_users.set()
    health = [ms for at, ms in await polls if begin <= at <= end]
    streams = [s for u in users for s in await u]
    quiet = [g for t in streams for g in gaps_ms(t, begin - 8, begin)]
    busy = [g for t in streams for g in gaps_ms(t, begin, end)]
    print(f"itl: prompt of {usage.prompt_tokens} tokens prefilled in {end - begin:.2f} s beside 4 streams; "
          f"undisturbed median {statistics.median(quiet):.1f} ms (p99 {quantile(quiet, 0.99):.1f}); "
          f"during: median {statistics.median(busy):.1f}, p99 {quantile(busy, 0.99):.1f} ms = "
          f"{quantile(busy, 0.99) / statistics.median(quiet):.2f} x the undisturbed median "
          f"({len(busy)} gaps); /health max {max(health):.1f} ms of {len(health)}")


async def waste(server: Server, model: str) -> None:
    api = client(server)
    pick = random.Random(5)
    begun: list[int] = []
    tasks = [
        asyncio.create_task(stream(api, model, prose(pick.randint(20, 700), 1000 + i), seed=i,
                                   on_first=lambda i=i: begun.append(i),
                                   max_tokens=pick.randint(500, 900), extra_body={"ignore_eos": True}))
        for i in range(16)
    ]
    samples = []
    while not all(t.done() for t in tasks):
        m = await asyncio.to_thread(metrics, server)
        # All 16 chat: before the last one's first token and after the first one's end fewer do.
        if len(begun) == 16 and m.get("vllm:num_requests_running", 0) == 16:
            samples.append(m["wok_kv_waste_ratio"])
        await asyncio.sleep(0.1)
    await asyncio.gather(*tasks)
    print(f"waste: mean {100 * statistics.mean(samples):.2f} %, max {100 * max(samples):.2f} % "
          f"({len(samples)} samples with 16 chats running)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wok")
    parser.add_argument("model")
    parser.add_argument("checks", nargs="*", default=["equal", "prefix", "itl", "waste"])
    args = parser.parse_args()
    for name in args.checks or ["equal", "prefix", "itl", "waste"]:
        with Server(args.wok, args.model) as server:
            model = served_model(server)
            if name == "prefix":
                cached = asyncio.run(prefix(server, model))
            else:
                asyncio.run({"equal": equal, "itl": itl, "waste": waste}[name](server, model))
        if name == "prefix":
            with Server(args.wok, args.model, "--no-prefix-cache") as server:
                uncached = asyncio.run(prefix(server, served_model(server)))
            print(f"prefix: {cached / uncached:.1f} x the throughput of --no-prefix-cache")


if __name__ == "__main__":
    main()
