#include "store/download.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "store/part_file.h"

namespace wok::store {
namespace {

constexpr uint64_t kMaxSegments = 1024;
constexpr auto kReport = std::chrono::milliseconds(100);

bool passing(int status) {
  return status == 408 || status == 425 || status == 429 || (status >= 500 && status != 501);
}

Error busy(const HttpRequest& request, int status) {
  const std::string place = request.url.substr(0, request.url.find_first_of("?#"));
  return {ErrorKind::kBusy, fmt::format("{} answers with status {}{}", place, status,
                                        status == 429 ? " (too many requests)" : "")};
}

// "bytes 100-199/1000" has to be what was asked for.
Status check_range(const HttpReply& reply, uint64_t begin, uint64_t bytes) {
  const std::string given = reply.header("content-range");
  if (given.starts_with(fmt::format("bytes {}-", begin)) &&
      given.ends_with(fmt::format("/{}", bytes))) {
    return Ok{};
  }
  return invalid(
      fmt::format("the server sent the range '{}', expected one from {} of {} bytes: the "
                  "file there is not the one that the hub lists",
                  given, begin, bytes));
}

// One download's streams and what they share.
class Fetch {
 public:
  Fetch(const Download& download, const DownloadOptions& options, const Explain& explain,
        std::atomic<bool>& stop)
      : download_(download), options_(options), explain_(explain), stop_(stop) {}

  bool ignores_range() const { return ignores_range_; }
  const std::optional<Error>& error() const { return error_; }

  // Fetches segment after segment until none is left or a stream has failed.
  void stream(HttpClient& client, PartFile& part, bool whole) {
    for (size_t i = next_++; i < part.segments() && !stop_; i = next_++) {
      if (part.complete(i)) continue;
      if (const Status status = segment(client, part, i, whole); !status.ok()) {
        const std::lock_guard lock(mutex_);
        if (!stop_.exchange(true)) error_ = status.error();
      }
    }
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_one();
  }

  // On the calling thread, while streams work.
  void watch(size_t streams, const std::function<void()>& report) {
    std::unique_lock lock(mutex_);
    while (ended_ < streams) {
      changed_.wait_for(lock, kReport);
      lock.unlock();
      report();
      lock.lock();
    }
  }

 private:
  Status segment(HttpClient& client, PartFile& part, size_t i, bool whole) {
    Retry retry(options_.retry, options_.http.stopped);
    for (;;) {
      if (whole) WOK_RETURN_IF_ERROR(part.restart(i));
      const uint64_t before = part.done(i);
      int64_t retry_after_s = 0;
      Status status = once(client, part, i, retry_after_s);
      if (status.ok() && part.complete(i)) return Ok{};
      if (ignores_range_) return status;
      if (status.ok()) {
        status = Error{ErrorKind::kBusy, fmt::format("{} ended early", part_name(part, i))};
      }
      if (!whole && part.done(i) > before) retry.progressed();
      WOK_RETURN_IF_ERROR(retry.again(status.error(), retry_after_s));
    }
  }

  Status once(HttpClient& client, PartFile& part, size_t i, int64_t& retry_after_s) {
    const uint64_t begin = part.begin(i) + part.done(i);
    const uint64_t end = part.begin(i) + part.size(i);
    const bool all = begin == 0 && end == download_.bytes;
    HttpRequest request{.url = download_.url, .headers = download_.headers, .range = ""};
    if (!all) request.range = fmt::format("{}-{}", begin, end - 1);
    const auto on_reply = [&](const HttpReply& reply) -> Status {
      retry_after_s = reply.retry_after_s;
      if (passing(reply.status)) return busy(request, reply.status);
      if (reply.status == 206 && !all) return check_range(reply, begin, download_.bytes);
      if (reply.status != 200) return explain_(reply);
      if (all) return Ok{};
      ignores_range_ = true;
      return Error{ErrorKind::kBusy, "the server ignores Range"};
    };
    const auto on_body = [&](std::span<const uint8_t> bytes) -> Status {
      if (bytes.size() > part.size(i) - part.done(i)) {
        return invalid(fmt::format("{} has more bytes than the {} that the hub lists",
                                   part_name(part, i), download_.bytes));
      }
      return part.append(i, bytes);
    };
    const Result<HttpReply> got = client.get(request, on_reply, on_body);
    return got.ok() ? Status(Ok{}) : Status(got.error());
  }

  std::string part_name(const PartFile& part, size_t i) const {
    const std::string place = download_.url.substr(0, download_.url.find_first_of("?#"));
    return part.segments() == 1 ? place : fmt::format("part {} of {}", i + 1, place);
  }

  const Download& download_;
  const DownloadOptions& options_;
  const Explain& explain_;
  std::atomic<bool>& stop_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> ignores_range_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t ended_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Downloader::Downloader(DownloadOptions options) : options_(std::move(options)) {
  options_.http.stopped = [this] { return stop_ || cancelled(); };
}

bool Downloader::cancelled() const {
  return options_.cancelled != nullptr && options_.cancelled->load();
}

HttpClient& Downloader::client(size_t index) {
  while (clients_.size() <= index) clients_.emplace_back(options_.http);
  return clients_[index];
}

// The same for a file every time, or a part could not be gone on with.
uint64_t Downloader::segment_size(uint64_t file_bytes) const {
  return std::max(options_.segment_bytes, (file_bytes + kMaxSegments - 1) / kMaxSegments);
}

Result<std::string> Downloader::get_text(const HttpRequest& request, uint64_t max_bytes,
                                         const Explain& explain, HttpReply* reply) {
  stop_ = false;
  Retry retry(options_.retry, options_.http.stopped);
  for (;;) {
    std::string text;
    int64_t retry_after_s = 0;
    const auto on_reply = [&](const HttpReply& got) -> Status {
      retry_after_s = got.retry_after_s;
      if (passing(got.status)) return busy(request, got.status);
      if (got.status != 200) return explain(got);
      return Ok{};
    };
    const auto on_body = [&](std::span<const uint8_t> bytes) -> Status {
      if (bytes.size() > max_bytes - text.size()) {
        return too_large(fmt::format("the answer from {} has more than {} bytes",
                                     request.url.substr(0, request.url.find('?')), max_bytes));
      }
      text.append(bytes.begin(), bytes.end());
      return Ok{};
    };
    const Result<HttpReply> got = client(0).get(request, on_reply, on_body);
    if (got.ok()) {
      if (reply != nullptr) *reply = *got;
      return text;
    }
    WOK_RETURN_IF_ERROR(retry.again(got.error(), retry_after_s));
  }
}

Status Downloader::fetch(const Download& download, const Explain& explain,
                         const std::function<void(uint64_t)>& on_progress) {
  bool whole = false;
  for (;;) {
    const uint64_t segment_bytes = whole ? download.bytes : segment_size(download.bytes);
    WOK_TRY(part, PartFile::open(download.part, download.bytes, segment_bytes));
    stop_ = false;
    size_t open_segments = 0;
    for (size_t i = 0; i < part.segments(); ++i) open_segments += part.complete(i) ? 0 : 1;
    const size_t streams =
        std::min(open_segments, static_cast<size_t>(std::max(options_.streams, 1)));
    if (streams > 0) client(streams - 1);  // made before a thread holds a reference
    Fetch fetch(download, options_, explain, stop_);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < streams; ++i) {
      threads.emplace_back([&, i] { fetch.stream(clients_[i], part, whole); });
    }
    fetch.watch(streams, [&] {
      if (on_progress) on_progress(part.done());
    });
    for (std::thread& thread : threads) thread.join();
    if (cancelled()) return Error{ErrorKind::kCancelled, "cancelled"};
    if (fetch.ignores_range() && !whole) {
      whole = true;
      continue;
    }
    if (fetch.error()) return *fetch.error();
    if (on_progress) on_progress(part.done());
    return Ok{};
  }
}

uint64_t part_bytes(const std::string& part) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(part + ".done", error);
  if (error) return 0;
  std::ifstream record(part + ".done", std::ios::binary);
  uint64_t total = 0;
  for (uint64_t i = 0, count = 0; i < size / sizeof(count); ++i) {
    record.read(reinterpret_cast<char*>(&count), sizeof(count));
    if (record) total += count;
  }
  return total;
}

void remove_part(const std::string& part) {
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  std::filesystem::remove(part + ".done", ignored);
}

}  // namespace wok::store
