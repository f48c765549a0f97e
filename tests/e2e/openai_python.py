"""Checks a running wok server with the official OpenAI client for Python.

    python openai_python.py http://127.0.0.1:8080

Prints one line a check; the exit code says whether all held. Needs requirements.txt.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import openai

BASE = sys.argv[1].rstrip("/") if len(sys.argv) > 1 else "http://127.0.0.1:8080"
client = openai.OpenAI(
    base_url=BASE + "/v1", api_key=os.environ.get("WOK_API_KEY", "none"), max_retries=0, timeout=600
)
MODEL = client.models.list().data[0].id
CHAT = [{"role": "user", "content": "Count from one to twenty in words."}]
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def chat(**members):
    members = {"messages": CHAT, "max_tokens": 24, "seed": 7, **members}
    return client.chat.completions.create(model=MODEL, **members)


def stream_chat(**members):
    """Text and finish reason of choice 0, the usage, and the chunks."""
    chunks = list(chat(stream=True, stream_options={"include_usage": True}, **members))
    choices = [c.choices[0] for c in chunks if c.choices]
    text = "".join(c.delta.content or "" for c in choices)
    return text, choices[-1].finish_reason, chunks[-1].usage, chunks


def refused(error_class, param=None, code=None, **members):
    try:
        chat(**members)
    except error_class as error:
        body = error.body
        assert set(body) >= {"message", "type", "param", "code"}, body
        if param is not None:
            assert body["param"] == param and param in body["message"], body
        if code is not None:
            assert body["code"] == code, body
        return body["message"]
    raise AssertionError(f"{members} was not refused")


@check
def models():
    assert client.models.retrieve(MODEL).id == MODEL
    try:
        client.models.retrieve("no/such-model")
        raise AssertionError("an unknown model was found")
    except openai.NotFoundError as error:
        assert error.code == "model_not_found" and MODEL in error.message, error


@check
def whole_chat():
    reply = chat()
    choice = reply.choices[0]
    assert reply.object == "chat.completion" and reply.model == MODEL
    assert choice.message.role == "assistant" and choice.message.content
    assert choice.finish_reason in ("stop", "length")
    usage = reply.usage
    assert 0 < usage.completion_tokens <= 24
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens_details.cached_tokens >= 0


@check
def stream_is_whole():
    whole = chat()
    text, reason, usage, chunks = stream_chat()
    assert text == whole.choices[0].message.content, (text, whole.choices[0].message.content)
    assert reason == whole.choices[0].finish_reason
    assert usage.completion_tokens == whole.usage.completion_tokens
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[0].choices[0].delta.content
    assert not chunks[-1].choices and all(c.usage is None for c in chunks[:-1])
    assert len({c.id for c in chunks}) == 1


@check
def greedy_repeats():
    first, second = chat(temperature=0), chat(temperature=0, seed=99)
    assert first.choices[0].message.content == second.choices[0].message.content


@check
def the_prefix_cache_shows():
    message = [{"role": "user", "content": "All work and no play. " * 40}]
    chat(messages=message)
    again = chat(messages=message).usage
    assert again.prompt_tokens_details.cached_tokens > 0, again


@check
def several_choices():
    reply = chat(n=3)
    assert [c.index for c in reply.choices] == [0, 1, 2]
    for i, choice in enumerate(reply.choices):
        alone = chat(seed=7 + i)
        assert alone.choices[0].message.content == choice.message.content, i


@check
def stop_strings():
    full = chat().choices[0].message.content
    stop = full[len(full) // 2 :][:3]
    reply = chat(stop=[stop, "\u0000never"])
    assert reply.choices[0].message.content == full[: full.index(stop)]
    assert reply.choices[0].finish_reason == "stop"
    text, reason, _, _ = stream_chat(stop=stop)
    assert text == full[: full.index(stop)] and reason == "stop"


@check
def logprobs():
    choice = chat(logprobs=True, top_logprobs=3).choices[0]
    entries = choice.logprobs.content
    assert entries and all(e.logprob <= 0 and len(e.top_logprobs) == 3 for e in entries)
    joined = b"".join(bytes(e.bytes) for e in entries).decode("utf-8", "replace")
    assert joined.strip() == choice.message.content.strip(), (joined, choice.message.content)
    chunks = list(chat(logprobs=True, stream=True))
    streamed = [
        e.token
        for chunk in chunks
        for c in chunk.choices
        if c.logprobs is not None
        for e in c.logprobs.content
    ]
    assert streamed == [e.token for e in entries]
    bare = chat(logprobs=True, top_logprobs=0).choices[0].logprobs.content
    assert bare[0].top_logprobs == []


@check
def completions():
    reply = client.completions.create(
        model=MODEL, prompt=["Once upon", "The sky is"], n=2, max_tokens=5, seed=1, logprobs=2
    )
    assert [c.index for c in reply.choices] == [0, 1, 2, 3]
    for choice in reply.choices:
        parts = choice.logprobs
        assert len(parts.tokens) == len(parts.token_logprobs) == len(parts.text_offset)
        assert all(len(top) in (2, 3) for top in parts.top_logprobs)
    echo = client.completions.create(model=MODEL, prompt="Once upon", max_tokens=3, echo=True)
    assert echo.choices[0].text.startswith("Once upon")
    ids = client.completions.create(model=MODEL, prompt=[1, 2, 3], max_tokens=3)
    assert ids.usage.prompt_tokens == 3
    text = "".join(
        c.choices[0].text
        for c in client.completions.create(
            model=MODEL, prompt="Once upon", max_tokens=5, seed=1, stream=True
        )
    )
    whole = client.completions.create(model=MODEL, prompt="Once upon", max_tokens=5, seed=1)
    assert text == whole.choices[0].text


@check
def extras():
    reply = chat(
        extra_body={"top_k": 20, "min_p": 0.02, "repetition_penalty": 1.1, "min_tokens": 4,
                    "return_token_ids": True, "ignore_eos": True}
    )
    assert reply.usage.completion_tokens == 24
    assert len(reply.choices[0].model_extra["token_ids"]) == 24


@check
def errors():
    refused(openai.BadRequestError, "temperature", temperature=3)
    refused(openai.BadRequestError, "top_p", top_p=-1)
    refused(openai.BadRequestError, "n", n=1000)
    refused(openai.BadRequestError, "stop", stop=["x"] * 1000)
    refused(openai.BadRequestError, "tools", tools=[{"type": "function", "function": {"name": "f"}}])
    refused(openai.BadRequestError, "response_format", response_format={"type": "json_object"})
    refused(openai.BadRequestError, "no_such", extra_body={"no_such": 1})
    message = refused(
        openai.BadRequestError, code="context_length_exceeded", max_tokens=100_000_000
    )
    assert "n_prompt" in message and "n_ctx" in message, message
    try:
        client.chat.completions.create(model="no-such-model", messages=CHAT)
        raise AssertionError("an unknown model answered")
    except openai.NotFoundError as error:
        assert MODEL in error.message, error


@check
def a_stream_left_early():
    stream = chat(stream=True, max_tokens=200)
    next(iter(stream))
    stream.close()
    assert chat(max_tokens=2).choices[0].message.content is not None


@check
def sixteen_streams_equal_alone():
    def one(i):
        messages = [{"role": "user", "content": f"Tell me a short story about the number {i}."}]
        return stream_chat(messages=messages, seed=100 + i, max_tokens=32)[0]

    alone = [one(i) for i in range(16)]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(one, range(16)))
    differing = [i for i in range(16) if alone[i] != together[i]]
    assert not differing, f"streams {differing} differ from what they give alone"


def main():
    failed = 0
    for function in CHECKS:
        try:
            function()
            print(f"ok      {function.__name__}", flush=True)
        except Exception as error:  # one check's failure must not hide the others'
            failed += 1
            print(f"FAILED  {function.__name__}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks passed with openai {openai.__version__}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
