// The scheduler by traces (tests/traces/*.trace): requests arrive, steps are planned, and the plan
// of every step is compared with what the file says. And by random load: no sequence starves, no
// page is lost.
#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>

namespace wok {
namespace {

struct World {
  World(const SchedulerOptions& options, int32_t pages)
      : step_tokens(options.step_tokens), cache(pages), scheduler(options, cache) {}
  Sequence& add(uint64_t id, int32_t prompt, int32_t output, int32_t prefix, int32_t priority = 0) {
    auto s = std::make_unique<Sequence>();
    s->id = s->arrival = id;
    s->priority = priority;
    s->prompt_tokens = prompt;
    s->max_tokens = prompt + output;
    // The first `prefix` tokens are the same for everyone, the others nobody else's.
    for (int32_t i = 0; i < prompt; ++i) {
      s->tokens.push_back(i < prefix ? i : static_cast<int32_t>(1000 * id) + i);
    }
    Sequence& added = *s;
    all[id] = std::move(s);
    scheduler.add(&added);
    return added;
  }
  // From now on every step of decodes verifies drafts of `tokens` tokens, the first `right` right.
  void draft(int32_t tokens, int32_t right) {
    draft_tokens = tokens;
    right_tokens = right;
  }
  // Plans and computes one step; each sequence whose logits were wanted gets a token and those of
  // its drafts that were right, and ends at its limit. Says what was planned: "id:begin+count", "*"
  // where logits are wanted.
  // With `pass` the prefill is left for end_pass(), and said behind a "|".
  std::string step(int32_t prefill_tokens, bool pass = false) {
    std::ostringstream said;
    std::vector<Sequence*> sampled;
    scheduler.plan(prefill_tokens);
    if (pass) {
      const auto chunks = scheduler.defer_prefill();
      in_pass.assign(chunks.begin(), chunks.end());
    }
    int32_t tokens = 0;
    const auto say = [&](const ScheduledChunk& c) {
      said << (said.tellp() > 0 ? " " : "") << c.sequence->id << ":" << c.begin << "+" << c.count
           << (c.wants_logits ? "*" : "");
    };
    for (const ScheduledChunk& c : plan_with_drafts()) {
      tokens += c.count;
      say(c);
      EXPECT_GE(static_cast<int32_t>(c.sequence->pages.size()) * kPageTokens, c.begin + c.count);
      EXPECT_LE(static_cast<int32_t>(c.sequence->pages.size()),
                c.sequence->pages_for(c.sequence->max_tokens));
      EXPECT_LT(c.begin + c.count, c.sequence->max_tokens + (c.sequence->decoding() ? 0 : 1));
      if (c.wants_logits) sampled.push_back(c.sequence);
    }
    EXPECT_LE(tokens, step_tokens);
    if (pass) {
      said << " |";
      for (const ScheduledChunk& c : in_pass) say(c);
    }
    for (Sequence* s : sampled) {
      const int32_t more = std::min(s->drafted, right_tokens);
      for (int32_t i = 0; i <= more; ++i) s->tokens.push_back(next_token(*s, 0));
    }
    scheduler.commit();
    end(sampled);
    return said.str();
  }

  void end_pass() {
    std::vector<Sequence*> sampled;
    for (const ScheduledChunk& c : in_pass) {
      EXPECT_GE(static_cast<int32_t>(c.sequence->pages.size()) * kPageTokens, c.begin + c.count);
      EXPECT_EQ(c.sequence->computed, c.begin) << "a pass's sequence was planned or preempted";
      if (!c.wants_logits) continue;
      c.sequence->tokens.push_back(next_token(*c.sequence, 0));
      sampled.push_back(c.sequence);
    }
    in_pass.clear();
    scheduler.commit_pass();
    end(sampled);
  }

  void end(const std::vector<Sequence*>& sampled) {
    for (Sequence* s : sampled) {
      EXPECT_EQ(s->computed, s->length() - 1);
      EXPECT_LE(s->tree_pages * kPageTokens, s->computed) << "a page of unverified tokens";
      EXPECT_LE(s->length(), s->max_tokens);
      if (s->length() >= s->max_tokens) scheduler.finish(s);
    }
    EXPECT_LE(scheduler.used_tokens(), scheduler.held_tokens());
    EXPECT_EQ(cache.check(), "");
  }

  static int32_t next_token(const Sequence& s, int32_t ahead) {
    return static_cast<int32_t>(500000 + 1000 * s.id) + s.length() + ahead;
  }
  // Pages that running sequences were promised and have not taken.
  int32_t promised() const {
    int32_t sum = 0;
    for (const auto& [id, s] : all) {
      if (s->state != SequenceState::kRunning) continue;
      sum += std::max(0, s->reserved_pages - static_cast<int32_t>(s->pages.size()));
    }
    return sum;
  }
  std::span<const ScheduledChunk> plan_with_drafts() {
    std::span<const ScheduledChunk> plan = scheduler.plan_drafts();  // nobody has any yet
    for (const ScheduledChunk& c : plan) {
      if (!c.sequence->decoding()) return plan;
    }
    for (const ScheduledChunk& c : plan) {
      c.sequence->drafted = draft_tokens;
      for (int32_t i = 0; i < draft_tokens; ++i) {
        c.sequence->draft[i] = i < right_tokens ? next_token(*c.sequence, i) : 7;
      }
    }
    const auto planned = plan.size();
    const int32_t spare = std::min(0, cache.available() - promised());
    plan = scheduler.plan_drafts();
    EXPECT_EQ(plan.size(), planned) << "drafts took a sequence out of the step";
    EXPECT_GE(cache.available() - promised(), spare) << "drafts took a promised page";
    return plan;
  }

  const int32_t step_tokens;
  int32_t draft_tokens = 0, right_tokens = 0;
  std::vector<ScheduledChunk> in_pass;
  PageCache cache;
  Scheduler scheduler;
  std::map<uint64_t, std::unique_ptr<Sequence>> all;
};

// A trace's lines: "pool PAGES RUNNING STEP_TOKENS [RESERVE]", "add ID PROMPT OUTPUT PREFIX
// [PRIORITY]", "abort ID", "draft TOKENS RIGHT", "step PREFILL = PLAN", "skip STEPS PREFILL" (not
// compared), "pass PREFILL = DECODES | PASS", "pass_end", "end PREEMPTIONS HIT_TOKENS"; "#"
// comments.
void replay(const std::string& path) {
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::unique_ptr<World> world;
  int number = 0, steps = 0;
  bool ended = false;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream in(line);
    std::string verb;
    if (!(in >> verb) || verb[0] == '#') continue;
    SCOPED_TRACE(path + ":" + std::to_string(number));
    if (verb == "pool") {
      SchedulerOptions options;
      int32_t pages = 0;
      in >> pages >> options.max_running >> options.step_tokens;
      if (int32_t reserve = 0; in >> reserve) options.output_reserve = reserve;
      world = std::make_unique<World>(options, pages);
    } else if (verb == "add") {
      int32_t id = 0, prompt = 0, output = 0, prefix = 0, priority = 0;
      in >> id >> prompt >> output >> prefix >> priority;
      world->add(static_cast<uint64_t>(id), prompt, output, prefix, priority);
    } else if (verb == "abort") {
      uint64_t id = 0;
      in >> id;
      world->scheduler.finish(world->all.at(id).get());
    } else if (verb == "draft") {
      int32_t tokens = 0, right = 0;
      in >> tokens >> right;
      world->draft(tokens, right);
    } else if (verb == "pass_end") {
      world->end_pass();
    } else if (verb == "step" || verb == "pass") {
      int32_t prefill = 0;
      std::string equals, want;
      in >> prefill >> equals;
      std::getline(in >> std::ws, want);
      EXPECT_EQ(world->step(prefill, verb == "pass"), want);
      ++steps;
    } else if (verb == "skip") {
      int32_t count = 0, prefill = 0;
      in >> count >> prefill;
      for (int32_t i = 0; i < count; ++i) world->step(prefill);
    } else if (verb == "end") {
      uint64_t preemptions = 0, hits = 0;
      in >> preemptions >> hits;
      EXPECT_EQ(world->scheduler.preemptions(), preemptions);
      EXPECT_EQ(world->scheduler.prefix_hit_tokens(), hits);
      EXPECT_EQ(world->scheduler.running() + world->scheduler.waiting(), 0);
      EXPECT_EQ(world->cache.held_pages(), 0);
      ended = true;
    } else {
      FAIL() << "unknown line: " << line;
    }
  }
  EXPECT_GT(steps, 0);
  EXPECT_TRUE(ended) << "the trace has no 'end' line";
}

TEST(Scheduler, ReplaysEveryTrace) {
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WOK_SOURCE_DIR "/tests/traces")) {
    if (entry.path().extension() != ".trace") continue;
    ++traces;
    replay(entry.path().string());
  }
  EXPECT_GE(traces, 7);
}

TEST(Scheduler, RandomLoadAlwaysEnds) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    World world({.max_running = 6, .step_tokens = round % 2 == 1 ? 32 : 64}, 24);
    uint64_t next = 1;
    int idle_steps = 0;
    for (int step = 0; step < 3000; ++step) {
      if (next <= 25 && random() % 3 == 0) {
        world.add(next++, static_cast<int32_t>(1 + random() % 150),
                  static_cast<int32_t>(1 + random() % 120), static_cast<int32_t>(random() % 80),
                  static_cast<int32_t>(random() % 2));
      }
      if (random() % 40 == 0 && next > 1) {
        Sequence* s = world.all.at(1 + random() % (next - 1)).get();
        if (s->state != SequenceState::kDone && !s->in_pass) world.scheduler.finish(s);
      }
      const auto most = static_cast<int32_t>(random() % (kMaxDraftTokens + 1));
      if (round % 2 == 1) world.draft(most, most > 0 ? static_cast<int32_t>(random() % most) : 0);
      const bool pass = round % 3 > 0 && world.in_pass.empty() && random() % 2 == 0;
      const std::string plan = world.step(static_cast<int32_t>(16 + random() % 48), pass);
      if (!world.in_pass.empty() && (plan == " |" || random() % 4 == 0)) world.end_pass();
      idle_steps = plan.empty() && world.in_pass.empty() ? idle_steps + 1 : 0;
      const bool busy = world.scheduler.running() + world.scheduler.waiting() > 0;
      ASSERT_FALSE(busy && idle_steps > 20) << "nothing moves in round " << round;
      if (next > 25 && !busy) break;
    }
    EXPECT_EQ(world.scheduler.running() + world.scheduler.waiting(), 0) << "round " << round;
    EXPECT_EQ(world.cache.held_pages(), 0);
    EXPECT_EQ(world.cache.check(), "");
  }
}

TEST(Scheduler, KnowsWhatCanNeverFit) {
  World world({}, 4);
  EXPECT_TRUE(world.scheduler.can_ever_fit(64));
  EXPECT_FALSE(world.scheduler.can_ever_fit(65));
}

}  // namespace
}  // namespace wok
