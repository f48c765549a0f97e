// Fetches files over HTTP into partial files that survive whatever happens: the next download of
// the same part goes on where the last one ended.
//
//   PATH         the file's bytes, at their places
//   PATH.done    how many bytes of each segment are there (64-bit numbers)
//
// A large file is fetched in segments, several at a time, each by Range. A server that ignores
// Range is read from start to end. Whether the bytes are the right ones is the caller's business.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/http.h"
#include "store/retry.h"

namespace wok::store {

struct DownloadOptions {
  HttpOptions http;  // its `stopped` is set from `cancelled`
  RetryOptions retry;
  int streams = 4;
  uint64_t segment_bytes = 64ULL << 20;  // larger for files that would have too many segments
  const std::atomic<bool>* cancelled = nullptr;
};

struct Download {
  std::string url;
  std::vector<std::string> headers;
  uint64_t bytes = 0;
  std::string part;  // where it goes; its folder is there
};

// Turns a reply that is neither success nor worth another try into an error with a way out.
using Explain = std::function<Error(const HttpReply&)>;

// Used by one thread at a time; keeps its connections.
class Downloader {
 public:
  explicit Downloader(DownloadOptions options);
  Downloader(const Downloader&) = delete;  // its clients ask it whether to stop
  Downloader& operator=(const Downloader&) = delete;

  // The whole body, at most `max_bytes`. Errors: `explain`'s; kIo when every try failed; kTooLarge;
  // kCancelled.
  Result<std::string> get_text(const HttpRequest& request, uint64_t max_bytes,
                               const Explain& explain, HttpReply* reply = nullptr);

  // All bytes of the file into its part. `on_progress` is called on this thread, ten times a
  // second, with the bytes that are there. Errors as above; kInvalid when the server has a file of
  // another size; the part stays for the next try.
  Status fetch(const Download& download, const Explain& explain,
               const std::function<void(uint64_t done_bytes)>& on_progress);

 private:
  bool cancelled() const;
  HttpClient& client(size_t index);
  uint64_t segment_size(uint64_t file_bytes) const;

  DownloadOptions options_;
  std::atomic<bool> stop_ = false;   // the other streams, when one has failed
  std::vector<HttpClient> clients_;  // one a stream
};

// Bytes of the part that are there already.
uint64_t part_bytes(const std::string& part);
void remove_part(const std::string& part);

}  // namespace wok::store
