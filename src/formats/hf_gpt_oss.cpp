#include "formats/hf_gpt_oss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "formats/hf_sources.h"

namespace wok {
namespace {

constexpr std::string_view kExperts = ".mlp.experts.";
constexpr std::string_view kSinks = ".self_attn.sinks";
constexpr int64_t kBlock = 32, kBlockBytes = 16;

// Every so manieth row of each expert, from `first` on: of gate and up, which alternate.
struct Rows {
  int64_t of_expert = 0;  // in the file
  int64_t first = 0, step = 1;
  int64_t each() const { return of_expert / step; }
  int64_t expert(int64_t row) const { return row / each(); }
  int64_t within(int64_t row) const { return row % each() * step + first; }
};

// Blocks with neighbouring elements in a byte, to those with split halves that GGUF has.
class Mxfp4Source final : public RowSource {
 public:
  Mxfp4Source(const HfTensor& blocks, const HfTensor& scales, Rows rows)
      : blocks_(blocks), scales_(scales), rows_(rows), groups_(blocks.dim(2)) {}
  void read_rows(int64_t begin, int64_t count, uint8_t* out) const override {
    for (int64_t r = begin; r < begin + count; ++r) {
      const int64_t row = rows_.expert(r) * rows_.of_expert + rows_.within(r);
      const uint8_t* scale = scales_.data.data() + row * groups_;
      const uint8_t* in = blocks_.data.data() + row * groups_ * kBlockBytes;
      for (int64_t g = 0; g < groups_; ++g, in += kBlockBytes) {
        *out++ = scale[g];
        const auto element = [&](int64_t k) { return in[k / 2] >> (4 * (k % 2)) & 15; };
        for (int64_t j = 0; j < kBlockBytes; ++j) {
          *out++ = static_cast<uint8_t>(element(j) | element(j + kBlockBytes) << 4);
        }
      }
    }
  }

 private:
  const HfTensor& blocks_;
  const HfTensor& scales_;
  Rows rows_;
  int64_t groups_;
};

// [experts, columns, rows] of elements of `size` bytes; columns may be one.
class TransposedSource final : public RowSource {
 public:
  TransposedSource(const HfTensor& from, Rows rows, int64_t cols, int64_t size)
      : from_(from), rows_(rows), cols_(cols), size_(size) {}
  void read_rows(int64_t begin, int64_t count, uint8_t* out) const override {
    // Neighbouring rows lie beside each other in the file: columns outside, rows inside.
    for (int64_t c = 0; c < cols_; ++c) {
      for (int64_t r = begin; r < begin + count; ++r) {
        const int64_t at = (rows_.expert(r) * cols_ + c) * rows_.of_expert + rows_.within(r);
        std::memcpy(out + ((r - begin) * cols_ + c) * size_, from_.data.data() + at * size_,
                    static_cast<size_t>(size_));
      }
    }
  }

 private:
  const HfTensor& from_;
  Rows rows_;
  int64_t cols_, size_;
};

// Every so manieth element of each row.
class StridedSource final : public RowSource {
 public:
  StridedSource(const HfTensor& from, Rows elements, int64_t size)
      : from_(from), elements_(elements), size_(size) {}
  void read_rows(int64_t begin, int64_t count, uint8_t* out) const override {
    for (int64_t i = begin * elements_.each(); i < (begin + count) * elements_.each(); ++i) {
      const int64_t at = elements_.expert(i) * elements_.of_expert + elements_.within(i);
      std::memcpy(out, from_.data.data() + at * size_, static_cast<size_t>(size_));
      out += size_;
    }
  }

 private:
  const HfTensor& from_;
  Rows elements_;
  int64_t size_;
};

class Reader {
 public:
  Reader(const std::string& name, const HfTensors& tensors, const std::string& folder)
      : name_(name), tensors_(tensors), folder_(folder), tensor_(tensors.find(name)->second) {}

  Result<std::vector<HfNamed>> read() {
    const std::string_view name = name_;
    const size_t layers = name.find("layers.");
    const size_t end = layers == std::string_view::npos ? layers : name.find('.', layers + 7);
    if (end == std::string_view::npos) return unknown();
    prefix_ = fmt::format("blk.{}.", name.substr(layers + 7, end - layers - 7));
    if (name.ends_with(kSinks)) return sinks();
    const std::string_view what = name.substr(name.find(kExperts) + kExperts.size());
    for (const std::string_view which : {"gate_up_proj", "down_proj"}) {
      if (!what.starts_with(which)) continue;
      const std::string_view part = what.substr(which.size());
      if (part == "_scales") return std::vector<HfNamed>();
      const bool pair = which == "gate_up_proj";
      if (pair) targets_ = {"ffn_gate_exps", "ffn_up_exps"};
      if (!pair) targets_ = {"ffn_down_exps"};
      if (part == "_blocks") return blocks();
      if (part == "_bias") return bias();
      if (part.empty()) return transposed();
    }
    return unknown();
  }

 private:
  Error unknown() const {
    return unsupported(
        fmt::format("'{}' holds '{}', which wok has no place for in gpt-oss", folder_, name_));
  }
  Error wrong(const std::string& what) const {
    return invalid(fmt::format("'{}': tensor '{}' {}", folder_, name_, what));
  }
  int64_t step() const { return static_cast<int64_t>(targets_.size()); }

  HfMatrix made(const WeightFormat* format, int64_t rows, int64_t cols,
                std::shared_ptr<const RowSource> source) const {
    HfMatrix out;
    out.rows = rows;
    out.cols = cols;
    out.format = format;
    out.source = std::move(source);
    out.identity = tensor_.data;
    out.stored_bytes = tensor_.data.size() / targets_.size();
    return out;
  }

  Result<std::vector<HfNamed>> sinks() {
    if (!tensor_.is_float()) return wrong("is no vector of floats");
    HfMatrix out;
    out.rows = 1;
    out.cols = tensor_.elements();
    out.format = hf_float_format(tensor_.type);
    out.data = tensor_.data;
    return std::vector<HfNamed>{{prefix_ + "attn_sinks.weight", out}};
  }

  Result<std::vector<HfNamed>> blocks() {
    const std::string scales_name = name_.substr(0, name_.size() - 6) + "scales";
    const auto found = tensors_.find(scales_name);
    if (found == tensors_.end()) return wrong("has no '" + scales_name + "' beside it");
    const HfTensor& scales = found->second;
    if (tensor_.type != HfType::kU8 || scales.type != HfType::kU8 || tensor_.shape.size() != 4 ||
        tensor_.dim(3) != kBlockBytes || tensor_.dim(1) % step() != 0 ||
        !std::equal(scales.shape.begin(), scales.shape.end(), tensor_.shape.begin(),
                    tensor_.shape.begin() + 3)) {
      return wrong("and its scales are not [experts, rows, groups, 16] and one byte a group");
    }
    std::vector<HfNamed> out;
    for (int64_t i = 0; i < step(); ++i) {
      const Rows rows{tensor_.dim(1), i, step()};
      out.push_back(
          {prefix_ + targets_[i] + ".weight",
           made(&kWeightFormat_mxfp4, tensor_.dim(0) * rows.each(), tensor_.dim(2) * kBlock,
                std::make_shared<Mxfp4Source>(tensor_, scales, rows))});
    }
    return out;
  }

  Result<std::vector<HfNamed>> transposed() {
    if (!tensor_.is_float() || tensor_.shape.size() != 3 || tensor_.dim(2) % step() != 0) {
      return wrong("is not [experts, inputs, outputs] of floats");
    }
    const WeightFormat* format = hf_float_format(tensor_.type);
    std::vector<HfNamed> out;
    for (int64_t i = 0; i < step(); ++i) {
      const Rows rows{tensor_.dim(2), i, step()};
      out.push_back({prefix_ + targets_[i] + ".weight",
                     made(format, tensor_.dim(0) * rows.each(), tensor_.dim(1),
                          std::make_shared<TransposedSource>(tensor_, rows, tensor_.dim(1),
                                                             format->row_bytes(1)))});
    }
    return out;
  }

  Result<std::vector<HfNamed>> bias() {
    if (!tensor_.is_float() || tensor_.shape.size() != 2 || tensor_.dim(1) % step() != 0) {
      return wrong("is not [experts, outputs] of floats");
    }
    const WeightFormat* format = hf_float_format(tensor_.type);
    std::vector<HfNamed> out;
    for (int64_t i = 0; i < step(); ++i) {
      const Rows elements{tensor_.dim(1), i, step()};
      out.push_back(
          {prefix_ + targets_[i] + ".bias",
           made(format, tensor_.dim(0), elements.each(),
                std::make_shared<StridedSource>(tensor_, elements, format->row_bytes(1)))});
    }
    return out;
  }

  const std::string& name_;
  const HfTensors& tensors_;
  const std::string& folder_;
  const HfTensor& tensor_;
  std::string prefix_;
  std::vector<std::string> targets_;
};

}  // namespace

bool is_gpt_oss_tensor(std::string_view name) {
  return name.find(kExperts) != std::string_view::npos || name.ends_with(kSinks);
}

Result<std::vector<HfNamed>> read_gpt_oss_tensor(const std::string& name, const HfTensors& tensors,
                                                 const std::string& folder) {
  return Reader(name, tensors, folder).read();
}

}  // namespace wok
