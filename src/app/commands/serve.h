// `wok serve`: a model behind an HTTP server until a signal ends it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/speculation.h"

namespace wok {

struct ServeOptions {
  std::string model_path;  // a GGUF file, already resolved
  std::string model_id;    // the name clients use

  std::string host = "127.0.0.1";
  uint16_t port = 8080;      // 0: a free one
  std::string api_key;       // "": none
  std::string api_key_file;  // one key a line; "": none
  uint64_t max_body_bytes = 32ull << 20;
  int32_t max_connections = 1024;
  double request_timeout_s = 3600;  // total time of one request; 0: no limit
  double grace_s = 30;              // of a drain, after the first SIGTERM or SIGINT

  int32_t threads = 0;         // 0: the CPUs this process may use
  int32_t context_tokens = 0;  // 0: what the model was trained for
  uint64_t kv_bytes = 0;       // 0: a share of free memory
  int32_t max_sequences = 64;
  int32_t max_queued = 1024;
  int32_t token_budget = 512;
  double itl_target_ms = 0;  // 0: automatic
  bool prefix_cache = true;
  bool fast_prefill = false;
  Speculation speculation = Speculation::lookup;
  int32_t draft_tokens = 7;
  std::string draft_model;  // path of a GGUF file; "": none

  std::string isa;        // "": the best this CPU has
  std::string cache_dir;  // pack files; "": keep none
  std::string log_level = "info";
};

// Binds the port, loads the model, serves. The first SIGINT or SIGTERM drains for grace_s and the
// result is 0, a second one ends the process at once. Errors end with the cause and the way out.
// Call from the main thread, before other threads are started: signals are blocked in all of them.
Result<int> run_serve(const ServeOptions& options);

}  // namespace wok
