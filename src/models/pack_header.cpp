#include "models/pack_header.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace wok {
namespace {

constexpr char kMagic[8] = {'w', 'o', 'k', ' ', 'p', 'a', 'c', 'k'};

uint64_t header_sum(const PackHeader& header) {
  return XXH3_64bits(&header, offsetof(PackHeader, header_sum));
}

template <size_t n>
void copy_text(char (&to)[n], const std::string& text) {
  std::memcpy(to, text.data(), std::min(n, text.size()));
}

template <size_t n>
std::string text_of(const char (&from)[n]) {
  return {from, ::strnlen(from, n)};
}

}  // namespace

std::string pack_file_name(const PackId& id) {
  return fmt::format("{}-{}-{}.pack", id.model, id.isa, id.panel_rows);
}

PackHeader make_pack_header(const PackId& id, std::span<const uint8_t> weights, ComputePool& pool) {
  PackHeader header{};
  WOK_CHECK(id.isa.size() <= sizeof(header.isa) && id.model.size() <= sizeof(header.model),
            "names fit a pack's header");
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.format_version = kPackFormatVersion;
  header.layout_version = static_cast<uint32_t>(id.layout_version);
  header.bytes = id.bytes;
  header.sample_sum = sample_sum(weights);
  header.whole_sum = whole_sum(weights, pool);
  header.panel_rows = static_cast<uint32_t>(id.panel_rows);
  copy_text(header.isa, id.isa);
  copy_text(header.model, id.model);
  header.header_sum = header_sum(header);
  return header;
}

std::string header_problem(std::span<const uint8_t> bytes, uint64_t file_bytes, const PackId& id) {
  if (bytes.size() < sizeof(PackHeader)) {
    return fmt::format("it has {} bytes, fewer than a header", file_bytes);
  }
  PackHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) return "it is no pack file";
  // Before the header's sum, which another format may not have at this place.
  if (header.format_version != kPackFormatVersion) {
    return fmt::format("its format is version {}, expected {}", header.format_version,
                       kPackFormatVersion);
  }
  if (header.header_sum != header_sum(header)) return "its header is damaged";
  if (header.layout_version != static_cast<uint32_t>(id.layout_version)) {
    return fmt::format("its weights are laid out as version {}, expected {}", header.layout_version,
                       id.layout_version);
  }
  if (text_of(header.isa) != id.isa || header.panel_rows != static_cast<uint32_t>(id.panel_rows)) {
    return fmt::format("it is for {} kernels with panels of {} rows, expected {} with {}",
                       text_of(header.isa), header.panel_rows, id.isa, id.panel_rows);
  }
  if (text_of(header.model) != id.model) return "it holds another model's weights";
  if (header.bytes != id.bytes) {
    return fmt::format("it holds {} bytes of weights, expected {}", header.bytes, id.bytes);
  }
  if (file_bytes != kPackHeaderBytes + id.bytes) {
    return fmt::format("it has {} bytes, expected {}", file_bytes, kPackHeaderBytes + id.bytes);
  }
  return "";
}

size_t sample_offset(size_t sample, size_t bytes) {
  if (bytes <= kSampleBytes) return 0;
  return (bytes - kSampleBytes) / (kSamples - 1) * sample +
         (sample == kSamples - 1 ? (bytes - kSampleBytes) % (kSamples - 1) : 0);
}

uint64_t sample_sum(std::span<const uint8_t> weights) {
  uint64_t sums[kSamples];
  const size_t size = std::min(kSampleBytes, weights.size());
  for (size_t i = 0; i < kSamples; ++i) {
    sums[i] = XXH3_64bits(weights.data() + sample_offset(i, weights.size()), size);
  }
  return XXH3_64bits(sums, sizeof(sums));
}

uint64_t whole_sum(std::span<const uint8_t> weights, ComputePool& pool) {
  const size_t chunks = (weights.size() + kSumChunkBytes - 1) / kSumChunkBytes;
  std::vector<uint64_t> sums(chunks);
  pool.run(static_cast<int32_t>(chunks), [&](int32_t i, int32_t) {
    const auto chunk = weights.subspan(
        i * kSumChunkBytes, std::min(kSumChunkBytes, weights.size() - i * kSumChunkBytes));
    sums[i] = XXH3_64bits(chunk.data(), chunk.size());
  });
  return XXH3_64bits(sums.data(), sums.size() * sizeof(sums[0]));
}

}  // namespace wok
