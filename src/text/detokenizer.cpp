#include "text/detokenizer.h"

#include <algorithm>

#include "base/check.h"
#include "text/utf8.h"

namespace wok {

namespace {

constexpr size_t kReservedBytes = 256;

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

}  // namespace

Detokenizer::Detokenizer(const Tokenizer& tokenizer, std::vector<std::string> stops,
                         bool show_special, bool include_stop)
    : tokenizer_(tokenizer),
      stops_(std::move(stops)),
      show_special_(show_special),
      include_stop_(include_stop) {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    WOK_CHECK(!stop.empty(), "an empty stop string would end every output at once");
    longest = std::max(longest, stop.size());
  }
  bytes_.reserve(kReservedBytes);
  held_.reserve(kReservedBytes + longest);
}

bool Detokenizer::feed(int32_t token, std::string& out) {
  if (stopped_) return true;
  const std::string_view piece = tokenizer_.piece(token, show_special_);
  if (piece.empty()) return false;
  bytes_ += piece;
  take_whole_characters(bytes_, held_);
  return release(out);
}

void Detokenizer::finish(std::string& out) {
  if (stopped_) return;
  if (!bytes_.empty()) {
    bytes_.clear();
    held_ += kReplacementCharacter;
    if (release(out)) return;
  }
  out += held_;
  held_.clear();
}

// The output ends at the first place where any stop is complete, and loses all of the longest stop
// that ends there. Both are properties of the text alone, so that where the tokens were cut cannot
// matter; "the stop that begins first" would not be known until later stops were ruled out.
bool Detokenizer::release(std::string& out) {
  size_t end = std::string::npos;
  size_t begin = 0;
  for (size_t i = 0; i < stops_.size(); ++i) {
    const size_t found = held_.find(stops_[i]);
    if (found == std::string::npos) continue;
    const size_t found_end = found + stops_[i].size();
    if (found_end < end || (found_end == end && found < begin)) {
      begin = found;
      end = found_end;
      stop_index_ = i;
    }
  }
  if (end != std::string::npos) {
    stopped_ = true;
    out.append(held_, 0, include_stop_ ? end : begin);
    held_.clear();
    bytes_.clear();
    return true;
  }

  // Hold back the longest tail that could be the beginning of a stop.
  size_t held = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > held; --length) {
      const size_t at = held_.size() - length;
      if (begins_character(held_[at]) && held_.compare(at, length, stop, 0, length) == 0) {
        held = length;
      }
    }
  }
  out.append(held_, 0, held_.size() - held);
  held_.erase(0, held_.size() - held);
  return false;
}

}  // namespace wok
