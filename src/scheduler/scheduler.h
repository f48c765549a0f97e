// Which tokens of which sequences a step computes. Pure logic over the page cache: no clock, no
// thread, no tensor, so that recorded traces replay exactly.
//
// A chunk is of a prompt or of an output, never of both: the two are computed in different forms,
// and a preempted sequence computes its tokens again in the form they had.
//
// A step takes every decoding sequence first, then admits waiting ones (priority, then arrival),
// then takes prefill chunks within a token budget: a quarter for the longest-standing prompt, the
// rest for those with least to go. A sequence is admitted when its prompt and a first stretch of
// output have pages; beyond that it competes for them, and when none is left the youngest running
// one is preempted: its pages go back to the tree, it waits at the front, and what the tree still
// has is not computed again.
//
// Where a step has no room for a chunk worth computing, the chunk becomes a pass: some of its
// layers are computed beside each of the following steps.
//
// A prefill page enters the tree when its first token is planned and becomes readable when its last
// one is computed. A sequence whose next page another one is computing waits for it: requests with
// a common prefix that arrive together compute it once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/page_cache.h"
#include "scheduler/sequence.h"

namespace wok {

struct SchedulerOptions {
  int32_t max_running = 64;
  int32_t step_tokens = 512;    // most tokens of one step
  int32_t output_reserve = 64;  // output tokens an admission keeps pages for, at most
  bool prefix_cache = true;
};

struct ScheduledChunk {
  Sequence* sequence = nullptr;
  int32_t begin = 0;  // first position computed
  int32_t count = 0;
  bool wants_logits = false;  // the chunk reaches the sequence's last token

  bool of_prompt() const { return begin < sequence->prompt_tokens; }
};

// Requests that wait for their first token.
struct WaitingPrompts {
  int32_t lengthy = 0;  // with a long way to go, whatever a step gives them
  double soon = 0;      // those that a step brings near it; a lengthy one counts for a part
  int32_t brief = 0;    // those that never had a long way to go
};

class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, PageCache& cache);

  // True when prompt and output of this many tokens could ever run.
  bool can_ever_fit(int32_t max_tokens) const;
  void add(Sequence* sequence);

  // Plans a step with at most `prefill_tokens` tokens of prefill. The plan is valid until the next
  // call. Every planned sequence has pages for what it computes. Preempted ones are waiting again.
  std::span<const ScheduledChunk> plan(int32_t prefill_tokens);

  // Extends the planned decodes by their sequences' drafts. A draft is cut to what its sequence may
  // still produce, and to pages that cost nobody anything: it never takes one that is promised, and
  // never preempts.
  std::span<const ScheduledChunk> plan_drafts();

  // Takes the prefill chunks out of the plan: they are computed beside the following steps, one
  // pass at a time. Until commit_pass() no prefill is planned, and the pass's sequences keep their
  // pages: they are not preempted, and finish() must wait. Returns the chunks, valid until then.
  std::span<const ScheduledChunk> defer_prefill();
  std::span<const ScheduledChunk> planned() const { return plan_; }
  // The pass was computed; otherwise as commit().
  void commit_pass();
  // The pass will never be computed: its chunks are to be planned again.
  void drop_pass();

  // The planned step was computed, and the tokens sampled from it are appended to their sequences:
  // pages it filled become readable, positions advance. Of a draft only what is among the tokens
  // counts; the rest is written again later.
  void commit();

  // Ends a sequence in whatever state; its full pages stay in the tree. Not between plan and
  // commit, nor while it is in a pass.
  void finish(Sequence* sequence);

  int32_t running() const { return static_cast<int32_t>(running_.size()); }
  int32_t decoding() const;  // running ones whose next token is an output token
  WaitingPrompts prompts() const;
  int32_t waiting() const { return static_cast<int32_t>(waiting_.size()); }
  uint64_t preemptions() const { return preemptions_; }
  uint64_t prefix_query_tokens() const { return query_tokens_; }
  uint64_t prefix_hit_tokens() const { return hit_tokens_; }
  // Tokens that the pages of running sequences hold, of those they have room for.
  int64_t used_tokens() const;
  int64_t held_tokens() const;

 private:
  bool try_admit(Sequence& s);
  bool adopt_prefix(Sequence& s);
  void plan_prefills(int32_t budget);
  void plan_prefill(Sequence& s, int32_t& budget);
  void extend_chunk(ScheduledChunk& chunk, int32_t& budget);
  int32_t extend_prefill(Sequence& s, int32_t begin, int32_t& budget);
  void plan_decode(Sequence& s);
  bool grow(Sequence& s, int32_t tokens);
  bool may_take_page(const Sequence& s) const;
  void preempt(Sequence& s);
  void release_pages(Sequence& s);
  void enter_tree(Sequence& s, int32_t from, int32_t to, bool ready);
  int32_t outstanding_pages() const;
  void insert_waiting(Sequence* s);
  void commit(const ScheduledChunk& chunk);
  Sequence* youngest_to_preempt(Sequence* otherwise) const;
  PageCache::Node tree_node(const Sequence& s) const;

  SchedulerOptions options_;
  PageCache& cache_;
  std::vector<Sequence*> waiting_;     // in the order they will be admitted
  std::vector<Sequence*> running_;     // in the order they were admitted
  std::vector<Sequence*> prefilling_;  // of the step under construction
  std::vector<ScheduledChunk> plan_, pass_;
  uint64_t preemptions_ = 0, query_tokens_ = 0, hit_tokens_ = 0;
};

}  // namespace wok
