"""Checks of the loads, the client and the figures, without a model: against a server of its own."""

from __future__ import annotations

import http.server
import json
import threading
import time
import unittest
from collections.abc import Iterator

from served import figures, loads, report, runner
from served.http_client import Client
from served.loads import Load, Request, Sizes, User
from served.runner import Stream


class Answers(http.server.BaseHTTPRequestHandler):
    """Four events a request, cut in odd places; `fail` in a prompt is refused, `stuck` waits."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b'{"data":[{"id":"m"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][-1]["content"]
        self.send_response(400 if prompt == "fail" else 200)
        self.send_header("Connection", "close")
        self.end_headers()
        if prompt == "fail":
            return
        events = ['{"choices":[{"delta":{"role":"assistant","content":null}}]}',
                  '{"choices":[{"delta":{"content":"a"}}]}',
                  '{"choices":[{"delta":{"content": "\\""}}]}',
                  '{"choices":[{"delta":{"content":""}}]}',
                  json.dumps({"choices": [], "usage": {
                      "prompt_tokens": 5 + len(prompt.split()), "completion_tokens": 2}},
                      separators=(",", ":")), "[DONE]"]
        data = "".join(f"data: {event}\n\n" for event in events).encode()
        for half in (data[:77], data[77:]):
            self.wfile.write(half)
            time.sleep(0.5 if prompt == "stuck" else 0.01)

    def log_message(self, *_: object) -> None:
        pass


def users(*prompts: str) -> list[User]:
    return [User(iter([Request(prompt, 2, 0)])) for prompt in prompts]


def stream(group: str, sent_s: float, times_s: list[float], **members: object) -> Stream:
    return Stream(group, sent_s, times_s, **members)


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = Client(self.server.server_port)

    def tearDown(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def test_pieces_with_text_are_counted_and_usage_is_read(self) -> None:
        one, = runner.run(self.client, Load(users("x y z")), 5)
        self.assertEqual((len(one.times_s), one.prompt_tokens, one.output_tokens), (2, 8, 2))
        self.assertTrue(one.done and not one.error)
        self.assertLessEqual(one.sent_s, one.times_s[0])

    def test_a_refusal_is_an_error_and_others_go_on(self) -> None:
        streams = runner.run(self.client, Load(users("fail", "x")), 5)
        self.assertIn("400", streams[0].error)
        self.assertEqual([s.done for s in streams], [False, True])

    def test_a_user_waits_for_the_answer_before_the_next_question(self) -> None:
        asked = iter([Request("a", 2, 0), Request("b", 2, 0)])
        first, second = runner.run(self.client, Load([User(asked)]), 5)
        self.assertGreaterEqual(second.sent_s, first.times_s[-1])

    def test_the_limit_ends_what_is_stuck(self) -> None:
        begin = time.monotonic()
        one, = runner.run(self.client, Load(users("stuck")), 0.1)
        self.assertFalse(one.done)
        self.assertLess(time.monotonic() - begin, 0.4)

    def test_a_load_ends_when_its_group_has_first_tokens(self) -> None:
        def forever() -> Iterator[Request]:
            while True:
                yield Request("x", 2, 0)
        late = User(iter([Request("x", 2, 0)]), "long", 0.2)
        streams = runner.run(self.client, Load([User(forever()), late], until="long"), 30)
        end_s = max(s.times_s[-1] for s in streams if s.times_s)
        self.assertLess(end_s, 0.2 + loads.TAIL_S + 1)
        self.assertGreater(sum(s.group == "user" for s in streams), 2)


class LoadsTest(unittest.TestCase):
    SIZES = Sizes(30 + 2 * Sizes.FEW, 30 + 2 * Sizes.MANY)  # two tokens a word, 30 of a template

    def test_words_follow_the_tokenizer(self) -> None:
        self.assertEqual(self.SIZES.words(230), 100)

    def test_prompts_differ_but_for_what_is_shared(self) -> None:
        short = [r.user for r in loads.make("users4", 1, self.SIZES).users[0].requests]
        self.assertEqual(len(set(short)), 12)
        self.assertNotIn(next(loads.make("users4", 2, self.SIZES).users[0].requests).user, short)
        shared = list(loads.make("shared", 1, self.SIZES).users[0].requests)
        self.assertEqual(len(shared), 64)
        self.assertEqual(len({r.system for r in shared}), 1)
        self.assertEqual(len({r.user for r in shared}), 64)

    def test_unknown_loads_are_refused(self) -> None:
        for name in ("user", "users", "shared4", "x", ""):
            with self.assertRaises(ValueError):
                loads.make(name, 1, self.SIZES)


class FiguresTest(unittest.TestCase):
    def test_answers(self) -> None:
        out = figures.of("users1", [
            stream("user", 0, [0.5, 0.6, 0.8], output_tokens=4, prompt_tokens=9, done=True),
            stream("user", 1, [2.0], error="cut")])
        self.assertEqual((out["ttft_p50_ms"], out["unfinished"], out["errors"]), (1000, 1, 1))
        self.assertEqual(out["output_tokens_per_s"], 5 / 2.0)
        self.assertAlmostEqual(out["itl_max_ms"], 200)

    def test_a_stall_counts_in_full_even_when_the_window_cuts_it(self) -> None:
        begin = loads.SETTLE_S + loads.QUIET_S
        chat = stream("stream", 0, [begin - 2, begin - 1, begin + 9, begin + 10])
        long = [stream("long", begin, [begin + 8]) for _ in range(loads.LONG_PROMPTS)]
        out = figures.of("arriving", [chat, *long])
        self.assertAlmostEqual(out["quiet_itl_max_ms"], 1000)
        self.assertAlmostEqual(out["busy_itl_max_ms"], 10_000)
        self.assertAlmostEqual(out["long4_ttft_s"], 8)

    def test_decode_is_the_time_in_which_all_decode(self) -> None:
        out = figures.of("decode2", [
            stream("user", 0, [1, 2, 3, 4, 5], prompt_tokens=100, done=True),
            stream("user", 0, [3, 4, 5, 6], prompt_tokens=100, done=True)])
        self.assertEqual((out["decode_tokens_per_s"], out["decode_s"], out["depth"]), (2, 2, 102))

    def test_the_table_marks_where_a_peer_is_better(self) -> None:
        def row(program: str, load: str, **sample: float) -> dict:
            return {"model": "m", "load": load, "program": program, "threads": 2,
                    "version": program, "commit": "abc", "date": "d", "samples": [sample]}
        rows = [row("wok", "users4", output_tokens_per_s=90, ttft_p50_ms=5, client_cpu=0.02),
                row("p", "users4", output_tokens_per_s=100, ttft_p50_ms=7),
                row("p", "shared", seconds=9, unfinished=2), row("wok", "shared", seconds=8)]
        text = report.section({"served": {str(i): r for i, r in enumerate(rows)}})
        self.assertIn("| wok | **90.0** | 5 | — | — | — | — | 2% | — | 1 |", text)
        self.assertIn("| p | — | > 9.0 | — |", text)
        self.assertEqual(report.section({}), "")


if __name__ == "__main__":
    unittest.main()
