#include "formats/grouped_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "quant/grouped.h"

namespace wok {
namespace {

constexpr int64_t kRowsAtOnce = 64;  // files go down columns: rows beside each other share lines
constexpr int64_t kGroupPanelColumns = 128;  // of Family::kInt4Group
constexpr float kLargestHalf = 65504;

// The weights themselves, for shapes that no packed form fits and orders that disagree.
class DenseSource final : public RowSource {
 public:
  explicit DenseSource(std::shared_ptr<const GroupedSource> from) : from_(std::move(from)) {}
  void read_rows(int64_t begin, int64_t count, uint8_t* out) const override {
    const GroupedSource::Shape& s = from_->shape();
    std::vector<uint8_t> codes(static_cast<size_t>(kRowsAtOnce * s.cols));
    std::vector<float> scales(s.groups()), zeros(s.groups());
    auto* to = reinterpret_cast<float*>(out);
    for (int64_t first = 0; first < count; first += kRowsAtOnce) {
      const int64_t n = std::min(kRowsAtOnce, count - first);
      from_->read_codes(begin + first, n, codes.data());
      for (int64_t r = 0; r < n; ++r) {
        from_->read_factors(begin + first + r, scales.data(), zeros.data());
        for (int64_t c = 0; c < s.cols; ++c) {
          const int64_t g = s.group_of.empty() ? c / s.group : s.group_of[c];
          const auto code = static_cast<float>(codes[r * s.cols + c]);
          *to++ = scales[g] * (code - zeros[g]);
        }
      }
    }
  }

 private:
  std::shared_ptr<const GroupedSource> from_;
};

}  // namespace

uint32_t stream_field(const uint8_t* words, int64_t stride, int32_t bits, int64_t i) {
  const int64_t at = i * bits;
  const auto word = [&](int64_t n) { return load_unaligned<uint32_t>(words + 4 * n * stride); };
  const int32_t shift = static_cast<int32_t>(at % 32);
  uint64_t both = word(at / 32);
  if (shift + bits > 32) both |= static_cast<uint64_t>(word(at / 32 + 1)) << 32;
  return static_cast<uint32_t>(both >> shift) & ((1u << bits) - 1);
}

Result<int64_t> group_columns(const HfModule& module, int64_t group_size, int64_t cols) {
  if (group_size == -1) return cols;
  if (group_size < 1 || group_size > (1 << 20)) {
    return module.wrong(fmt::format("a group size of {}", group_size));
  }
  return group_size;
}

// Columns sorted by group, where each group then has its place: order_ says which input each is.
bool GroupedSource::order_by_groups() {
  std::vector<int64_t> members(shape_.groups());
  for (const int32_t g : shape_.group_of) ++members[g];
  for (int64_t g = 0; g < shape_.groups(); ++g) {
    if (members[g] != std::min(shape_.group, shape_.cols - g * shape_.group)) return false;
  }
  order_.resize(shape_.cols);
  for (int64_t c = 0; c < shape_.cols; ++c) order_[c] = static_cast<int32_t>(c);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int32_t a, int32_t b) { return shape_.group_of[a] < shape_.group_of[b]; });
  return true;
}

Status GroupedSource::prepare(const HfModule& module) {
  const int32_t middle = 1 << (shape_.bits - 1);
  bool symmetric = true;
  std::vector<float> scales(shape_.groups()), zeros(shape_.groups());
  for (int64_t r = 0; r < shape_.rows; ++r) {
    read_factors(r, scales.data(), zeros.data());
    for (int64_t g = 0; g < shape_.groups(); ++g) {
      if (!(std::fabs(scales[g]) <= kLargestHalf)) {
        return module.wrong(fmt::format("the scale of row {}, group {} is {}", r, g, scales[g]));
      }
      symmetric = symmetric && zeros[g] == static_cast<float>(middle);
    }
  }
  for (const int32_t g : shape_.group_of) {
    if (g < 0 || g >= shape_.groups()) {
      return module.wrong(fmt::format("g_idx names group {} of {}", g, shape_.groups()));
    }
  }
  bool trivial = true;
  for (size_t c = 0; c < shape_.group_of.size() && trivial; ++c) {
    trivial = shape_.group_of[c] == static_cast<int32_t>(static_cast<int64_t>(c) / shape_.group);
  }
  if (trivial) shape_.group_of.clear();
  const bool one_group = shape_.group >= shape_.cols;
  if (shape_.cols % kBlockColumns != 0) return Ok{};
  if (!one_group && shape_.group % kBlockColumns != 0) return Ok{};
  if (!shape_.group_of.empty() && !order_by_groups()) return Ok{};
  if (shape_.bits == 8) {
    if (symmetric) format_ = &kWeightFormat_int8;
  } else if (shape_.bits == 2 && symmetric) {
    format_ = &kWeightFormat_int2;
  } else if (one_group || shape_.group % kGroupPanelColumns == 0) {
    format_ = &kWeightFormat_int4_group;
  } else {
    format_ = &kWeightFormat_int4_point;
  }
  if (format_ == nullptr) order_.clear();
  return Ok{};
}

void GroupedSource::read_rows(int64_t begin, int64_t count, uint8_t* out) const {
  const int64_t cols = shape_.cols;
  std::vector<uint8_t> codes(static_cast<size_t>(kRowsAtOnce * cols));
  std::vector<float> scales(shape_.groups()), zeros(shape_.groups());
  for (int64_t first = 0; first < count; first += kRowsAtOnce) {
    const int64_t n = std::min(kRowsAtOnce, count - first);
    read_codes(begin + first, n, codes.data());
    for (int64_t r = 0; r < n; ++r) {
      read_factors(begin + first + r, scales.data(), zeros.data());
      const uint8_t* row = codes.data() + r * cols;
      for (int64_t b = 0; b < cols / kBlockColumns; ++b, out += sizeof(GroupedBlock)) {
        const int64_t g = b * kBlockColumns / shape_.group;
        GroupedBlock block{scales[g], zeros[g], {}};
        for (int c = 0; c < kBlockColumns; ++c) {
          const int64_t at = b * kBlockColumns + c;
          block.code[c] = row[order_.empty() ? at : order_[at]];
        }
        if (format_ == &kWeightFormat_int8) {
          block.zero = 0;
          for (uint8_t& code : block.code) code = static_cast<uint8_t>(code - 128);
        } else if (format_ == &kWeightFormat_int2) {
          // -2..1 is what the packed form's -1..2 is with the other sign.
          block.scale = -block.scale;
          block.zero = 1;
          for (uint8_t& code : block.code) code = static_cast<uint8_t>(3 - code);
        }
        std::memcpy(out, &block, sizeof(block));
      }
    }
  }
}

Result<PackedParts> find_packed_parts(const HfModule& module) {
  const PackedParts parts{module.find("qweight"), module.find("qzeros"), module.find("scales")};
  if (parts.codes == nullptr || parts.zeros == nullptr || parts.scales == nullptr) {
    return module.wrong("qweight, qzeros or scales is missing");
  }
  return parts;
}

Result<HfMatrix> make_grouped(std::shared_ptr<GroupedSource> source, const HfModule& module,
                              std::initializer_list<const HfTensor*> stored) {
  WOK_RETURN_IF_ERROR(source->prepare(module));
  HfMatrix out{.rows = source->shape().rows, .cols = source->shape().cols};
  for (const HfTensor* tensor : stored) {
    if (tensor != nullptr) out.stored_bytes += tensor->data.size();
  }
  out.identity = (*stored.begin())->data;
  out.dense = std::make_shared<DenseSource>(source);
  out.format = source->format();
  out.source = std::move(source);
  if (out.format == nullptr) {
    out.format = &kWeightFormat_f32;
    out.source = out.dense;
  }
  return out;
}

}  // namespace wok
