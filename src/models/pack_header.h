// The first page of a pack file: what the weights behind it are, for which kernels, and the sums
// that tell whether they are still what was written. Numbers are little-endian, as all of wok.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "base/thread_pool.h"

namespace wok {

// Which packed weights are wanted. A file that differs in any field is not used.
struct PackId {
  std::string model;  // of the weights packed; the file's name begins with it
  std::string isa;    // the kernel table's name
  int32_t panel_rows = 0;
  int32_t layout_version = 0;  // of the panels; raised when their layout changes
  uint64_t bytes = 0;          // of packed weights
};

std::string pack_file_name(const PackId& id);  // "<model>-<isa>-<panel rows>.pack"

inline constexpr size_t kPackHeaderBytes = 4096;
inline constexpr uint32_t kPackFormatVersion = 2;

struct PackHeader {
  char magic[8];
  uint32_t format_version;
  uint32_t layout_version;
  uint64_t bytes;
  uint64_t sample_sum;  // of sampled(), read at every opening
  uint64_t whole_sum;
  uint32_t panel_rows;
  char isa[20];
  char model[256];
  uint64_t header_sum;  // of all bytes before it
};
static_assert(sizeof(PackHeader) == 328 && sizeof(PackHeader) <= kPackHeaderBytes);

// `weights` are the bytes behind the header.
PackHeader make_pack_header(const PackId& id, std::span<const uint8_t> weights, ComputePool& pool);

// Why a file of file_bytes that begins with `header` does not hold `id`; "" when it does, as far as
// a header can tell. `header` may be cut short.
std::string header_problem(std::span<const uint8_t> header, uint64_t file_bytes, const PackId& id);

// Places of the small pieces that every opening reads: they find a file that was overwritten, has
// holes or lost its end, at the cost of a few page faults.
constexpr size_t kSamples = 64, kSampleBytes = 512;
size_t sample_offset(size_t sample, size_t bytes);
uint64_t sample_sum(std::span<const uint8_t> weights);

// XXH3 of every kSumChunkBytes, and XXH3 of those: threads share the work.
constexpr size_t kSumChunkBytes = size_t{4} << 20;
uint64_t whole_sum(std::span<const uint8_t> weights, ComputePool& pool);

}  // namespace wok
