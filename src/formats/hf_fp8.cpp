// Weights in FP8 (E4M3: arXiv 2209.05433) with a factor of the whole matrix, of each row, or of
// blocks of both, as DeepSeek V3 and compressed-tensors store them. The factor multiplies, also
// where it is called weight_scale_inv.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>

#include "formats/hf_fp8.h"

namespace wok {
namespace {

using Json = nlohmann::json;

// Sign, 4 bits of exponent with bias 7, 3 of mantissa; 0x7f and 0xff are NaN, nothing is infinite.
float e4m3_to_float(uint8_t code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                   : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  if ((code & 0x7f) == 0x7f) return std::nanf("");
  return code & 0x80 ? -size : size;
}

const std::array<float, 256>& e4m3_table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> t{};
    for (int i = 0; i < 256; ++i) t[i] = e4m3_to_float(static_cast<uint8_t>(i));
    return t;
  }();
  return table;
}

class Fp8Source final : public RowSource {
 public:
  Fp8Source(const HfTensor& weight, const HfTensor& scale, int64_t block_rows, int64_t block_cols)
      : weight_(weight),
        scale_(scale),
        block_rows_(block_rows),
        block_cols_(block_cols),
        blocks_((weight.dim(1) + block_cols - 1) / block_cols) {}

  void read_rows(int64_t begin, int64_t count, uint8_t* out) const override {
    const int64_t cols = weight_.dim(1);
    const auto& table = e4m3_table();
    auto* to = reinterpret_cast<float*>(out);
    for (int64_t r = begin; r < begin + count; ++r) {
      const uint8_t* row = weight_.data.data() + r * cols;
      for (int64_t c = 0; c < cols; ++c) {
        *to++ = table[row[c]] * scale_.float_at(r / block_rows_ * blocks_ + c / block_cols_);
      }
    }
  }

 private:
  const HfTensor& weight_;
  const HfTensor& scale_;
  int64_t block_rows_, block_cols_, blocks_;
};

Result<HfMatrix> read(const HfModule& module, const Json& config) {
  std::vector<int64_t> block;
  if (const Json size = config.value("weight_block_size", Json()); size.is_array()) {
    for (const Json& n : size) block.push_back(n.is_number_integer() ? n.get<int64_t>() : 0);
  }
  return read_fp8(module, block);
}

}  // namespace

Result<HfMatrix> read_fp8(const HfModule& module, const std::vector<int64_t>& block) {
  const HfTensor* weight = module.find("weight");
  const HfTensor* scale = module.find("weight_scale_inv");
  if (scale == nullptr) scale = module.find("weight_scale");
  if (weight == nullptr || weight->type != HfType::kF8E4M3 || weight->shape.size() != 2) {
    return module.wrong("its weight is no matrix of F8_E4M3");
  }
  if (scale == nullptr || !scale->is_float()) {
    return module.wrong("FP8 weights without weight_scale or weight_scale_inv");
  }
  const int64_t rows = weight->dim(0), cols = weight->dim(1), factors = scale->elements();
  int64_t block_rows = rows, block_cols = cols;
  if (!block.empty()) {
    if (block.size() != 2 || block[0] < 1 || block[1] < 1) {
      return module.wrong("weight_block_size is not two positive numbers");
    }
    block_rows = block[0];
    block_cols = block[1];
  } else if (factors == rows && factors > 1) {
    block_rows = 1;
  }
  const int64_t wanted =
      ((rows + block_rows - 1) / block_rows) * ((cols + block_cols - 1) / block_cols);
  if (rows < 1 || cols < 1 || factors != wanted) {
    return module.wrong(fmt::format("{} factors for {} x {} weights in blocks of {} x {}", factors,
                                    rows, cols, block_rows, block_cols));
  }
  for (int64_t i = 0; i < factors; ++i) {
    if (!std::isfinite(scale->float_at(i))) return module.wrong("a factor is no finite number");
  }
  for (const uint8_t code : weight->data) {
    if ((code & 0x7f) == 0x7f) return module.wrong("a weight is NaN");
  }
  return HfMatrix{.rows = rows,
                  .cols = cols,
                  .format = &kWeightFormat_f32,
                  .source = std::make_shared<Fp8Source>(*weight, *scale, block_rows, block_cols),
                  .identity = weight->data,
                  .stored_bytes = weight->data.size() + scale->data.size()};
}

const HfScheme kHfScheme_fp8 = {"fp8", "weight", read};

}  // namespace wok
