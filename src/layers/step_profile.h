// Where a step's time goes: one span a region of the forward pass, with the bytes it has to read
// and the operations it has to do, so that each can be held against the roof. Off (null) it costs
// one branch a region.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace wok {

struct StepProfile {
  struct Span {
    const char* name;
    int64_t begin_ns, end_ns;
    double bytes;  // weights and keys and values read, as they lie in memory
    double ops;    // multiplies and adds
  };
  std::vector<Span> spans;
};

class ProfileScope {
 public:
  ProfileScope(StepProfile* profile, const char* name, double bytes = 0, double ops = 0)
      : profile_(profile) {
    if (profile_ != nullptr) span_ = {name, now_ns(), 0, bytes, ops};
  }
  ~ProfileScope() {
    if (profile_ == nullptr) return;
    span_.end_ns = now_ns();
    profile_->spans.push_back(span_);
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  static int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }
  StepProfile* profile_;
  StepProfile::Span span_{};
};

}  // namespace wok
