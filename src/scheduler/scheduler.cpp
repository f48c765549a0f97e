#include "scheduler/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace wok {
namespace {

constexpr double kSoon = 256;  // tokens to go that count as WaitingPrompts::soon

bool runs_before(const Sequence& a, const Sequence& b) {
  return a.priority != b.priority ? a.priority < b.priority : a.arrival < b.arrival;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, PageCache& cache)
    : options_(options), cache_(cache) {
  running_.reserve(options.max_running);
  plan_.reserve(options.max_running);
  pass_.reserve(options.max_running);
  prefilling_.reserve(options.max_running);
}

bool Scheduler::can_ever_fit(int32_t max_tokens) const {
  return (max_tokens + kPageTokens - 1) / kPageTokens <= cache_.pages();
}

void Scheduler::insert_waiting(Sequence* s) {
  const auto at =
      std::upper_bound(waiting_.begin(), waiting_.end(), s,
                       [](const Sequence* a, const Sequence* b) { return runs_before(*a, *b); });
  waiting_.insert(at, s);
}

void Scheduler::add(Sequence* s) {
  s->state = SequenceState::kWaiting;
  insert_waiting(s);
}

PageCache::Node Scheduler::tree_node(const Sequence& s) const {
  return {s.tree_pages == 0 ? -1 : s.pages[s.tree_pages - 1], s.name_space};
}

// Pages promised to running sequences that they have not taken yet.
int32_t Scheduler::outstanding_pages() const {
  int32_t sum = 0;
  for (const Sequence* s : running_) {
    sum += std::max(0, s->reserved_pages - static_cast<int32_t>(s->pages.size()));
  }
  return sum;
}

// Takes what the tree has of the sequence's next whole pages. At least one token is left to
// compute: its logits are what comes next. False: the next page is being written, and must be
// waited for.
bool Scheduler::adopt_prefix(Sequence& s) {
  if (!options_.prefix_cache) return true;
  while (s.computed % kPageTokens == 0 && s.tree_pages == s.computed / kPageTokens &&
         static_cast<int32_t>(s.pages.size()) == s.tree_pages &&
         s.computed + kPageTokens < s.length()) {
    bool ready = false;
    const int32_t page = cache_.find(tree_node(s), s.page_tokens(s.tree_pages), &ready);
    if (page < 0) break;
    if (!ready) return false;
    cache_.retain(page);
    s.pages.push_back(page);
    ++s.tree_pages;
    s.computed += kPageTokens;
    if (!s.counted_cached) {
      s.cached_tokens = std::min(s.computed, s.prompt_tokens);
      hit_tokens_ += kPageTokens;
    }
  }
  return true;
}

void Scheduler::release_pages(Sequence& s) {
  // Pages it entered and did not finish must not stay behind as ones that others wait for.
  while (s.tree_pages > s.computed / kPageTokens) cache_.remove(s.pages[--s.tree_pages]);
  // Leaves first, so that they are the older ones in the order of eviction.
  for (auto page = s.pages.rbegin(); page != s.pages.rend(); ++page) cache_.release(*page);
  s.pages.clear();
  s.tree_pages = 0;
  s.computed = 0;
  s.drafted = 0;
}

bool Scheduler::try_admit(Sequence& s) {
  if (running() >= options_.max_running) return false;
  adopt_prefix(s);
  const int32_t goal = std::min(s.length() + options_.output_reserve, s.max_tokens);
  s.reserved_pages = s.pages_for(goal);
  const int32_t needed = s.reserved_pages - static_cast<int32_t>(s.pages.size());
  if (needed > cache_.available() - outstanding_pages()) {
    if (!s.counted_cached) hit_tokens_ -= s.pages.size() * kPageTokens;
    release_pages(s);
    s.cached_tokens = s.counted_cached ? s.cached_tokens : 0;
    return false;
  }
  s.state = SequenceState::kRunning;
  running_.push_back(&s);
  return true;
}

// Pages for positions [0, tokens). False when the pool has none left.
bool Scheduler::grow(Sequence& s, int32_t tokens) {
  while (static_cast<int32_t>(s.pages.size()) < s.pages_for(tokens)) {
    const int32_t page = cache_.allocate();
    if (page < 0) return false;
    s.pages.push_back(page);
  }
  return true;
}

void Scheduler::preempt(Sequence& s) {
  release_pages(s);
  s.state = SequenceState::kWaiting;
  running_.erase(std::find(running_.begin(), running_.end(), &s));
  insert_waiting(&s);
  ++preemptions_;
}

// A pass writes to the pages of its sequences: they are not taken from under it.
Sequence* Scheduler::youngest_to_preempt(Sequence* otherwise) const {
  Sequence* youngest = otherwise;
  for (Sequence* s : running_) {
    if (!s->in_pass && (youngest == nullptr || runs_before(*youngest, *s))) youngest = s;
  }
  return youngest;
}

// A running sequence's next token. When there is no page for it the youngest gives way, which may
// be the sequence itself; with nobody younger planned already, its plan entry is not made.
void Scheduler::plan_decode(Sequence& s) {
  while (!grow(s, s.computed + 1)) {
    Sequence* youngest = youngest_to_preempt(&s);
    const bool itself = youngest == &s;
    std::erase_if(plan_, [&](const ScheduledChunk& c) { return c.sequence == youngest; });
    preempt(*youngest);
    if (itself) return;
  }
  plan_.push_back({&s, s.computed, 1, true});
}

// Enters the whole pages [from, to) of the sequence into the tree, following on what is there.
void Scheduler::enter_tree(Sequence& s, int32_t from, int32_t to, bool ready) {
  if (!options_.prefix_cache) return;
  for (int32_t p = from; p < to; ++p) {
    if (s.tree_pages != p) return;  // an earlier page stayed outside: nothing to hang this one on
    const int32_t there = cache_.insert(tree_node(s), s.pages[p], s.page_tokens(p), ready);
    if (there != s.pages[p]) {
      // Another sequence wrote the same tokens at the same place. When readable its page is as good
      // as ours (equal inputs give equal bits): take it and give ours back.
      bool other_ready = false;
      cache_.find(tree_node(s), s.page_tokens(p), &other_ready);
      if (!ready || !other_ready) return;
      cache_.retain(there);
      cache_.release(s.pages[p]);
      s.pages[p] = there;
    }
    ++s.tree_pages;
  }
}

// Computes up to `budget` tokens of the sequence from position `begin` on; takes them off the
// budget. The position where they end; `begin` when there is nothing to compute or no page.
int32_t Scheduler::extend_prefill(Sequence& s, int32_t begin, int32_t& budget) {
  const int32_t end_of_part = begin < s.prompt_tokens ? s.prompt_tokens : s.length();
  int32_t end = std::min(end_of_part, begin + budget);
  // To a page's end where the budget reaches one: whole pages are ready for others sooner.
  const int32_t page_end = end / kPageTokens * kPageTokens;
  if (end < s.length() && page_end > begin) end = page_end;
  if (end <= begin || !grow(s, end)) return begin;  // pages come back when others finish
  // Also the page the chunk ends in, when all its tokens are known: whoever wants it waits for it.
  enter_tree(s, s.tree_pages, std::min(s.pages_for(end), s.length() / kPageTokens), false);
  budget -= end - begin;
  return end;
}

void Scheduler::plan_prefill(Sequence& s, int32_t& budget) {
  if (!adopt_prefix(s) || budget <= 0) return;
  const int32_t end = extend_prefill(s, s.computed, budget);
  if (end == s.computed) return;
  if (!s.counted_cached) {
    s.counted_cached = true;
    query_tokens_ += s.prompt_tokens;
  }
  plan_.push_back({&s, s.computed, end - s.computed, end == s.length()});
}

// The longest-standing prompt takes a quarter of the budget first, so that it always gets on. The
// rest goes to whoever has least to go, it among them: a short prompt does not wait for a long
// one's end.
void Scheduler::plan_prefills(int32_t budget) {
  if (budget <= 0) return;
  while (!waiting_.empty() && budget > 0) {
    Sequence* s = waiting_.front();
    if (!try_admit(*s)) break;
    waiting_.erase(waiting_.begin());
    if (!s->decoding()) continue;
    plan_decode(*s);  // was preempted, and the tree still has all its pages
    --budget;
  }
  prefilling_.clear();
  for (Sequence* s : running_) {
    if (!s->decoding() && !s->in_pass) prefilling_.push_back(s);
  }
  if (prefilling_.empty() || budget <= 0) return;
  Sequence* const leader = prefilling_.front();
  const size_t first = plan_.size();
  const int32_t quarter = (budget + 3) / 4;
  int32_t left = quarter;
  plan_prefill(*leader, left);
  budget -= quarter - left;
  std::sort(prefilling_.begin(), prefilling_.end(), [](const Sequence* a, const Sequence* b) {
    const int32_t to_go_a = a->length() - a->computed, to_go_b = b->length() - b->computed;
    return a->priority != b->priority || to_go_a == to_go_b ? runs_before(*a, *b)
                                                            : to_go_a < to_go_b;
  });
  for (Sequence* s : prefilling_) {
    if (s != leader) {
      plan_prefill(*s, budget);
    } else if (plan_.size() > first && plan_[first].sequence == leader) {
      extend_chunk(plan_[first], budget);
    }
  }
}

// More tokens for a planned prompt.
void Scheduler::extend_chunk(ScheduledChunk& chunk, int32_t& budget) {
  Sequence& s = *chunk.sequence;
  const int32_t begin = chunk.begin + chunk.count;
  // A chunk is of a prompt or of an output, never of both.
  if (begin == s.length() || (chunk.of_prompt() && begin >= s.prompt_tokens)) return;
  chunk.count = extend_prefill(s, begin, budget) - chunk.begin;
  chunk.wants_logits = chunk.begin + chunk.count == s.length();
}

std::span<const ScheduledChunk> Scheduler::plan(int32_t prefill_tokens) {
  plan_.clear();
  // By index: plan_decode may take sequences out of the list (the youngest, so mostly behind i).
  for (size_t i = 0; i < running_.size();) {
    Sequence* s = running_[i];
    if (s->decoding()) plan_decode(*s);
    if (i < running_.size() && running_[i] == s) ++i;
  }
  if (!pass_.empty()) return plan_;
  plan_prefills(
      std::min(prefill_tokens, options_.step_tokens - static_cast<int32_t>(plan_.size())));
  if (plan_.empty() && !running_.empty()) {
    // Every running sequence waits for pages that only another can give: the youngest steps back.
    Sequence* youngest = running_.back();
    if (running_.size() > 1) preempt(*youngest);
  }
  return plan_;
}

std::span<const ScheduledChunk> Scheduler::defer_prefill() {
  WOK_CHECK(pass_.empty(), "one pass at a time");
  const auto prefill = std::find_if(plan_.begin(), plan_.end(), [](const ScheduledChunk& c) {
    return !c.sequence->decoding();  // decodes come first
  });
  pass_.assign(prefill, plan_.end());
  plan_.erase(prefill, plan_.end());
  for (const ScheduledChunk& chunk : pass_) chunk.sequence->in_pass = true;
  return pass_;
}

// A page it was promised, or one that is promised to nobody.
bool Scheduler::may_take_page(const Sequence& s) const {
  return static_cast<int32_t>(s.pages.size()) < s.reserved_pages ||
         cache_.available() > outstanding_pages();
}

std::span<const ScheduledChunk> Scheduler::plan_drafts() {
  int32_t room = options_.step_tokens;
  for (const ScheduledChunk& chunk : plan_) room -= chunk.count;
  for (ScheduledChunk& chunk : plan_) {
    Sequence& s = *chunk.sequence;
    if (s.drafted == 0) continue;
    WOK_CHECK(s.decoding() && chunk.count == 1, "only a decode has a draft");
    // A step gives one token more than the drafts that were right.
    const int32_t most = std::min(room, s.max_tokens - s.length() - 1);
    s.drafted = std::clamp(s.drafted, 0, std::max(most, 0));
    const int32_t end = chunk.begin + 1 + s.drafted;
    while (static_cast<int32_t>(s.pages.size()) < s.pages_for(end) && may_take_page(s)) {
      if (!grow(s, (static_cast<int32_t>(s.pages.size()) + 1) * kPageTokens)) break;
    }
    const int32_t held = static_cast<int32_t>(s.pages.size()) * kPageTokens;
    s.drafted = std::min(end, held) - chunk.begin - 1;
    chunk.count += s.drafted;
    room -= s.drafted;
  }
  return plan_;
}

void Scheduler::commit(const ScheduledChunk& chunk) {
  Sequence& s = *chunk.sequence;
  s.computed = std::min(chunk.begin + chunk.count, s.length() - 1);
  s.drafted = 0;
  const int32_t whole = std::min(s.tree_pages, s.computed / kPageTokens);
  for (int32_t p = chunk.begin / kPageTokens; p < whole; ++p) cache_.set_ready(s.pages[p]);
  enter_tree(s, s.tree_pages, s.computed / kPageTokens, true);
}

void Scheduler::commit() {
  for (const ScheduledChunk& chunk : plan_) commit(chunk);
  plan_.clear();
}

void Scheduler::commit_pass() {
  for (const ScheduledChunk& chunk : pass_) {
    chunk.sequence->in_pass = false;
    commit(chunk);
  }
  pass_.clear();
}

void Scheduler::drop_pass() {
  for (const ScheduledChunk& chunk : pass_) chunk.sequence->in_pass = false;
  pass_.clear();
}

void Scheduler::finish(Sequence* s) {
  WOK_CHECK(plan_.empty() && !s->in_pass, "sequences end between steps");
  auto& list = s->state == SequenceState::kRunning ? running_ : waiting_;
  if (s->state != SequenceState::kDone) list.erase(std::find(list.begin(), list.end(), s));
  release_pages(*s);
  s->state = SequenceState::kDone;
}

int32_t Scheduler::decoding() const {
  return static_cast<int32_t>(std::count_if(running_.begin(), running_.end(),
                                            [](const Sequence* s) { return s->decoding(); }));
}

WaitingPrompts Scheduler::prompts() const {
  WaitingPrompts prompts{.soon = static_cast<double>(waiting())};
  for (const Sequence* s : running_) {
    if (s->decoding()) continue;
    const int32_t to_go = s->length() - s->computed;
    prompts.soon += std::min(1.0, kSoon / to_go);
    if (to_go > kSoon) ++prompts.lengthy;
    if (s->length() - s->cached_tokens <= kSoon) ++prompts.brief;
  }
  return prompts;
}

int64_t Scheduler::used_tokens() const {
  int64_t sum = 0;
  for (const Sequence* s : running_) sum += s->computed;
  for (const ScheduledChunk& chunk : pass_) sum += chunk.count;  // being written
  return sum;
}

int64_t Scheduler::held_tokens() const {
  int64_t sum = 0;
  for (const Sequence* s : running_) sum += static_cast<int64_t>(s->pages.size()) * kPageTokens;
  return sum;
}

}  // namespace wok
