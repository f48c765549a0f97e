#include "formats/gguf.h"

#include <fmt/format.h>

#include <regex>

#include "formats/gguf_parser.h"

namespace wok {
namespace {

constexpr int64_t kMaxParts = 9999;

// "<prefix>-00001-of-00003.gguf" to the name of part `number` (from 1).
std::optional<std::string> part_name(const std::string& path, int64_t number, int64_t count) {
  static const std::regex pattern("^(.*)-([0-9]{5})-of-([0-9]{5})\\.gguf$");
  std::smatch match;
  if (!std::regex_match(path, match, pattern)) return std::nullopt;
  return fmt::format("{}-{:05}-of-{:05}.gguf", match[1].str(), number, count);
}

}  // namespace

Result<ModelFile> parse_gguf(std::span<const uint8_t> bytes, const std::string& name) {
  ModelFile file;
  file.path_ = name;
  file.file_bytes_ = bytes.size();
  WOK_RETURN_IF_ERROR(GgufParser(bytes, name).parse(file, true));
  return file;
}

Result<ModelFile> open_gguf(const std::string& path) {
  WOK_TRY(mapping, MappedFile::open(path));
  auto first = std::make_shared<MappedFile>(std::move(mapping));
  WOK_TRY(file, parse_gguf(first->bytes(), path));
  file.mappings_.push_back(std::move(first));
  WOK_TRY(count, file.get_int("split.count"));
  if (!count || *count <= 1) return file;

  WOK_TRY(number, file.get_int("split.no"));
  if (number.value_or(0) != 0) {
    return invalid(fmt::format("'{}' is part {} of {}; open part 1 of the model", path,
                               number.value_or(0) + 1, *count));
  }
  if (*count > kMaxParts || !part_name(path, 1, *count)) {
    return invalid(
        fmt::format("'{}' is one of {} parts but is not named "
                    "<name>-00001-of-{:05}.gguf; restore the parts' names",
                    path, *count, *count));
  }
  WOK_TRY(total, file.get_int("split.tensors.count"));
  for (int64_t part = 2; part <= *count; ++part) {
    const std::string name = *part_name(path, part, *count);
    auto opened = MappedFile::open(name);
    if (!opened.ok()) {
      return Error{opened.error().kind, fmt::format("part {} of {} of the model is missing: {}",
                                                    part, *count, opened.error().message)};
    }
    auto next = std::make_shared<MappedFile>(std::move(opened).value());
    file.file_bytes_ += next->bytes().size();
    file.values_.erase("split.no");
    WOK_RETURN_IF_ERROR(GgufParser(next->bytes(), name).parse(file, false));
    WOK_TRY(found, file.get_int("split.no"));
    if (found.value_or(-1) != part - 1) {
      return invalid(fmt::format("'{}' says it is part {}, expected part {}", name,
                                 found.value_or(-1) + 1, part));
    }
    WOK_TRY(parts, file.get_int("split.count"));  // as this part has it
    if (parts.value_or(*count) != *count) {
      return invalid(fmt::format("'{}' is one of {} parts, the first says {}", name,
                                 parts.value_or(0), *count));
    }
    file.mappings_.push_back(std::move(next));
  }
  if (total && *total != static_cast<int64_t>(file.tensors_.size())) {
    return invalid(fmt::format("'{}': the parts hold {} tensors, the first says {}", path,
                               file.tensors_.size(), *total));
  }
  return file;
}

}  // namespace wok
