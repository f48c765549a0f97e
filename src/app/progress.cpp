#include "app/progress.h"

#include <algorithm>

#include <fmt/format.h>

#include "store/files.h"

namespace wok::app {
namespace {

using Stage = store::PullProgress::Stage;
constexpr int kBarWidth = 30;
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr const char* kClearLine = "\r\x1b[K";

const char* verb(Stage stage) {
  switch (stage) {
    case Stage::kWaiting:
      return "waiting for another pull";
    case Stage::kDownloading:
      return "downloading";
    case Stage::kAsking:
      return "asking the hub";
    case Stage::kUnpacking:
      return "unpacking and checking";
    case Stage::kChecking:
      return "checking";
  }
  return "";
}

double fraction(const store::PullProgress& progress) {
  if (progress.total_bytes == 0) return 0;
  return static_cast<double>(progress.done_bytes) / static_cast<double>(progress.total_bytes);
}

}  // namespace

PullDisplay::~PullDisplay() {
  if (drawn_) fmt::print(stderr, "{}", kClearLine);
}

void PullDisplay::show(const store::PullProgress& progress) {
  const auto now = Clock::now();
  const bool new_stage = !any_ || progress.stage != stage_;
  if (new_stage) {
    any_ = true;
    stage_ = progress.stage;
    stage_began_ = now;
    began_bytes_ = progress.done_bytes;
    last_tenth_ = 0;
  }
  if (!terminal_) {
    const int tenth = static_cast<int>(fraction(progress) * 10);
    if (new_stage || tenth > last_tenth_) print_line(progress);
    last_tenth_ = tenth;
  } else if (new_stage || now - last_shown_ >= kRedraw ||
             progress.done_bytes == progress.total_bytes) {
    last_shown_ = now;
    draw(progress);
  }
}

void PullDisplay::note(const std::string& text) {
  fmt::print(stderr, "{}{}: {}\n", drawn_ ? kClearLine : "", name_, text);
}

void PullDisplay::print_line(const store::PullProgress& progress) {
  if (progress.total_bytes == 0) {
    fmt::print(stderr, "{}: {}\n", name_, verb(progress.stage));
  } else {
    fmt::print(stderr, "{}: {} {:3.0f} % of {}\n", name_, verb(progress.stage),
               100 * fraction(progress), store::human_bytes(progress.total_bytes));
  }
}

void PullDisplay::draw(const store::PullProgress& progress) {
  drawn_ = true;
  if (progress.total_bytes == 0) {
    fmt::print(stderr, "{}{}: {} …", kClearLine, name_, verb(progress.stage));
    return;
  }
  const int filled = static_cast<int>(fraction(progress) * kBarWidth);
  const double seconds = std::chrono::duration<double>(Clock::now() - stage_began_).count();
  const uint64_t came = progress.done_bytes - std::min(began_bytes_, progress.done_bytes);
  const double rate = seconds > 0.5 ? static_cast<double>(came) / seconds : 0;
  std::string tail;
  if (rate > 0) {
    const auto left = static_cast<double>(progress.total_bytes - progress.done_bytes);
    tail = fmt::format("  {}/s, {:.0f} s left", store::human_bytes(static_cast<uint64_t>(rate)),
                       left / rate);
  }
  fmt::print(stderr, "{}{}: {} [{:#<{}}{:.<{}}] {:3.0f} % of {}{}", kClearLine, name_,
             verb(progress.stage), "", filled, "", kBarWidth - filled, 100 * fraction(progress),
             store::human_bytes(progress.total_bytes), tail);
  std::fflush(stderr);
}

}  // namespace wok::app
