// Checks a running wok server with the official OpenAI client for JavaScript.
//
//   npm install && node openai_js.mjs http://127.0.0.1:8080
//
// Prints one line a check; the exit code says whether all held.
import assert from "node:assert/strict";
import OpenAI from "openai";

const base = (process.argv[2] ?? "http://127.0.0.1:8080").replace(/\/$/, "");
const client = new OpenAI({
  baseURL: `${base}/v1`,
  apiKey: process.env.WOK_API_KEY ?? "none",
  maxRetries: 0,
});
const model = (await client.models.list()).data[0].id;
const messages = [{ role: "user", content: "Count from one to twenty in words." }];
const chat = (members = {}) =>
  client.chat.completions.create({ model, messages, max_tokens: 24, seed: 7, ...members });

async function streamChat(members = {}) {
  let text = "";
  let reason = null;
  let usage = null;
  let first = null;
  const options = { stream: true, stream_options: { include_usage: true }, ...members };
  for await (const chunk of await chat(options)) {
    first ??= chunk;
    text += chunk.choices[0]?.delta?.content ?? "";
    reason = chunk.choices[0]?.finish_reason ?? reason;
    usage = chunk.usage ?? usage;
  }
  return { text, reason, usage, first };
}

const checks = {
  async models() {
    assert.equal((await client.models.retrieve(model)).id, model);
    await assert.rejects(client.models.retrieve("no-such-model"), OpenAI.NotFoundError);
  },
  async wholeChat() {
    const reply = await chat();
    assert.equal(reply.choices[0].message.role, "assistant");
    assert.ok(reply.choices[0].message.content.length > 0);
    assert.ok(reply.usage.prompt_tokens_details.cached_tokens >= 0);
  },
  async streamIsWhole() {
    const whole = await chat();
    const stream = await streamChat();
    assert.equal(stream.text, whole.choices[0].message.content);
    assert.equal(stream.reason, whole.choices[0].finish_reason);
    assert.equal(stream.usage.completion_tokens, whole.usage.completion_tokens);
    assert.equal(stream.first.choices[0].delta.role, "assistant");
  },
  async severalChoices() {
    const reply = await chat({ n: 2 });
    assert.deepEqual(reply.choices.map((choice) => choice.index), [0, 1]);
  },
  async stopStrings() {
    const full = (await chat()).choices[0].message.content;
    const stop = full.slice(full.length / 2, full.length / 2 + 3);
    const reply = await chat({ stop });
    assert.equal(reply.choices[0].message.content, full.slice(0, full.indexOf(stop)));
    assert.equal(reply.choices[0].finish_reason, "stop");
  },
  async logprobs() {
    const entries = (await chat({ logprobs: true, top_logprobs: 2 })).choices[0].logprobs.content;
    assert.ok(entries.every((entry) => entry.top_logprobs.length === 2 && entry.logprob <= 0));
  },
  async completions() {
    const reply = await client.completions.create({ model, prompt: "Once upon", max_tokens: 5 });
    assert.equal(reply.usage.completion_tokens <= 5, true);
  },
  async errors() {
    await assert.rejects(chat({ temperature: 3 }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, "temperature");
      return true;
    });
    await assert.rejects(chat({ model: "no-such-model" }), OpenAI.NotFoundError);
    await assert.rejects(chat({ max_tokens: 100_000_000 }), (error) => {
      assert.equal(error.code, "context_length_exceeded");
      return true;
    });
  },
  async aStreamLeftEarly() {
    const stream = await chat({ stream: true, max_tokens: 200 });
    for await (const chunk of stream) {
      assert.ok(chunk);
      break;
    }
    assert.ok((await chat({ max_tokens: 2 })).id);
  },
  async sixteenStreamsEqualAlone() {
    const one = (i) => streamChat({ seed: 100 + i, max_tokens: 32 });
    const alone = [];
    for (let i = 0; i < 16; ++i) alone.push((await one(i)).text);
    const together = await Promise.all(alone.map((_, i) => one(i)));
    assert.deepEqual(together.map((reply) => reply.text), alone);
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.message}`);
  }
}
console.log(`${Object.keys(checks).length - failed} of ${Object.keys(checks).length} checks passed`);
process.exit(failed === 0 ? 0 : 1);
