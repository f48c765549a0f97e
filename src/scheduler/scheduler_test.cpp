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
  World(const SchedulerOptions& options, int32_t pages) : cache(pages), scheduler(options, cache) {}
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
  // Plans and computes one step; each sequence whose logits were wanted gets a token, and ends at
  // its limit. Says what was planned: "id:begin+count", "*" where logits are wanted.
  std::string step(int32_t prefill_tokens) {
    std::ostringstream said;
    std::vector<Sequence*> sampled;
    for (const ScheduledChunk& c : scheduler.plan(prefill_tokens)) {
      said << (said.tellp() > 0 ? " " : "") << c.sequence->id << ":" << c.begin << "+" << c.count
           << (c.wants_logits ? "*" : "");
      EXPECT_GE(static_cast<int32_t>(c.sequence->pages.size()) * kPageTokens, c.begin + c.count);
      if (c.wants_logits) sampled.push_back(c.sequence);
    }
    scheduler.commit();
    for (Sequence* s : sampled) {
      s->tokens.push_back(static_cast<int32_t>(500000 + 1000 * s->id) + s->length());
      if (s->length() >= s->max_tokens) scheduler.finish(s);
    }
    EXPECT_EQ(cache.check(), "");
    return said.str();
  }

  PageCache cache;
  Scheduler scheduler;
  std::map<uint64_t, std::unique_ptr<Sequence>> all;
};

// A trace's lines: "pool PAGES RUNNING STEP_TOKENS [RESERVE]", "add ID PROMPT OUTPUT PREFIX
// [PRIORITY]", "abort ID", "step PREFILL = PLAN", "skip STEPS PREFILL" (not compared), "end
// PREEMPTIONS HIT_TOKENS"; "#" comments.
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
    } else if (verb == "step") {
      int32_t prefill = 0;
      std::string equals, want;
      in >> prefill >> equals;
      std::getline(in >> std::ws, want);
      EXPECT_EQ(world->step(prefill), want);
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
  EXPECT_GE(traces, 4);
}

TEST(Scheduler, RandomLoadAlwaysEnds) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    World world({.max_running = 6, .step_tokens = 64}, 24);
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
        if (s->state != SequenceState::kDone) world.scheduler.finish(s);
      }
      const std::string plan = world.step(static_cast<int32_t>(16 + random() % 48));
      idle_steps = plan.empty() ? idle_steps + 1 : 0;
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
