#include "formats/hf_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace wok {
namespace {

void read_rows(const HfMatrix& from, int64_t begin, int64_t count, uint8_t* out) {
  if (from.source != nullptr) return from.source->read_rows(begin, count, out);
  const auto bytes = static_cast<size_t>(from.format->row_bytes(from.cols));
  std::memcpy(out, from.data.data() + static_cast<size_t>(begin) * bytes,
              static_cast<size_t>(count) * bytes);
}

class StackedSource final : public RowSource {
 public:
  explicit StackedSource(std::vector<HfMatrix> parts) : parts_(std::move(parts)) {}
  void read_rows(int64_t begin, int64_t count, uint8_t* out) const override {
    const int64_t each = parts_[0].rows;
    const auto bytes = static_cast<size_t>(parts_[0].format->row_bytes(parts_[0].cols));
    while (count > 0) {
      const int64_t first = begin % each, n = std::min(count, each - first);
      wok::read_rows(parts_[static_cast<size_t>(begin / each)], first, n, out);
      begin += n;
      count -= n;
      out += static_cast<size_t>(n) * bytes;
    }
  }

 private:
  std::vector<HfMatrix> parts_;
};

class SlicedSource final : public RowSource {
 public:
  SlicedSource(HfMatrix from, int64_t slab_rows, int64_t first, int64_t rows)
      : from_(std::move(from)), slab_rows_(slab_rows), first_(first), rows_(rows) {}
  void read_rows(int64_t begin, int64_t count, uint8_t* out) const override {
    const auto bytes = static_cast<size_t>(from_.format->row_bytes(from_.cols));
    while (count > 0) {
      const int64_t at = begin % rows_, n = std::min(count, rows_ - at);
      wok::read_rows(from_, begin / rows_ * slab_rows_ + first_ + at, n, out);
      begin += n;
      count -= n;
      out += static_cast<size_t>(n) * bytes;
    }
  }

 private:
  HfMatrix from_;
  int64_t slab_rows_, first_, rows_;
};

class PlusOneSource final : public RowSource {
 public:
  explicit PlusOneSource(HfMatrix from) : from_(std::move(from)) {}
  void read_rows(int64_t begin, int64_t count, uint8_t* out) const override {
    std::vector<uint8_t> row(static_cast<size_t>(from_.format->row_bytes(from_.cols)));
    auto* to = reinterpret_cast<float*>(out);
    for (int64_t r = begin; r < begin + count; ++r, to += from_.cols) {
      wok::read_rows(from_, r, 1, row.data());
      from_.format->dequantize(row.data(), to, from_.cols);
      for (int64_t i = 0; i < from_.cols; ++i) to[i] += 1;
    }
  }

 private:
  HfMatrix from_;
};

}  // namespace

Result<HfMatrix> hf_stack(std::vector<HfMatrix> parts, const std::string& folder,
                          const std::string& module) {
  HfMatrix out = parts[0];
  out.rows = out.stored_bytes = 0;
  for (const HfMatrix& part : parts) {
    if (part.rows != parts[0].rows || part.cols != parts[0].cols ||
        part.format != parts[0].format) {
      return invalid(
          fmt::format("'{}': the experts beside '{}' differ in shape or format", folder, module));
    }
    out.rows += part.rows;
    out.stored_bytes += part.source == nullptr ? part.data.size() : part.stored_bytes;
  }
  if (out.source == nullptr) out.identity = out.data;
  out.data = {};
  out.dense = nullptr;
  out.source = std::make_shared<StackedSource>(std::move(parts));
  return out;
}

Result<HfMatrix> hf_slice(const HfMatrix& from, int64_t slabs, int32_t part, int32_t parts,
                          const std::string& folder, const std::string& module) {
  if (slabs < 1 || from.rows % (slabs * parts) != 0) {
    return invalid(fmt::format("'{}': the {} rows of '{}' are not {} equal parts", folder,
                               from.rows, module, slabs * parts));
  }
  HfMatrix out = from;
  const int64_t slab_rows = from.rows / slabs, rows = slab_rows / parts;
  out.rows = from.rows / parts;
  out.stored_bytes = (from.source == nullptr ? from.data.size() : from.stored_bytes) /
                     static_cast<uint64_t>(parts);
  if (from.source == nullptr) out.identity = from.data;
  out.data = {};
  out.dense = nullptr;
  out.source = std::make_shared<SlicedSource>(from, slab_rows, part * rows, rows);
  return out;
}

HfMatrix hf_plus_one(const HfMatrix& from) {
  HfMatrix out = from;
  if (from.source == nullptr) {
    out.identity = from.data;
    out.stored_bytes = from.data.size();
  }
  out.data = {};
  out.format = &kWeightFormat_f32;
  out.source = std::make_shared<PlusOneSource>(from);
  return out;
}

const WeightFormat* hf_float_format(HfType type) {
  switch (type) {
    case HfType::kF32:
      return &kWeightFormat_f32;
    case HfType::kF16:
      return &kWeightFormat_f16;
    case HfType::kBF16:
      return &kWeightFormat_bf16;
    default:
      return nullptr;
  }
}

}  // namespace wok
