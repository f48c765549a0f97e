// AWQ checkpoints (arXiv 2306.00978) in the layout that AutoAWQ calls GEMM: codes and zero points
// packed along the outputs, eight in a word in an order of their own. w = scale * (code - zero);
// what the method did to activations is folded into the weights before.
#include <fmt/format.h>

#include <algorithm>

#include "base/half.h"
#include "formats/grouped_source.h"

namespace wok {
namespace {

using Json = nlohmann::json;

constexpr int64_t kInWord = 8;
constexpr int kNibbleOf[kInWord] = {0, 4, 1, 5, 2, 6, 3, 7};  // of each output of a word

class AwqSource final : public GroupedSource {
 public:
  AwqSource(Shape shape, const HfTensor& codes, const HfTensor& zeros, const HfTensor& scales)
      : GroupedSource(std::move(shape)),
        codes_(codes.data.data()),
        zeros_(zeros.data.data()),
        scales_(scales) {}

  void read_codes(int64_t begin, int64_t count, uint8_t* out) const override {
    const Shape& s = shape();
    for (int64_t c = 0; c < s.cols; ++c) {
      for (int64_t r = 0; r < count; ++r) out[r * s.cols + c] = field(codes_, c, begin + r);
    }
  }

  void read_factors(int64_t row, float* scales, float* zeros) const override {
    const Shape& s = shape();
    for (int64_t g = 0; g < s.groups(); ++g) {
      scales[g] = scales_.float_at(g * s.rows + row);
      zeros[g] = field(zeros_, g, row);
    }
  }

 private:
  uint8_t field(const uint8_t* words, int64_t line, int64_t row) const {
    const auto word =
        load_unaligned<uint32_t>(words + 4 * (line * (shape().rows / kInWord) + row / kInWord));
    return static_cast<uint8_t>(word >> (4 * kNibbleOf[row % kInWord]) & 15);
  }

  const uint8_t* codes_;
  const uint8_t* zeros_;
  const HfTensor& scales_;
};

Result<HfMatrix> read(const HfModule& module, const Json& config) {
  WOK_TRY(parts, find_packed_parts(module));
  const auto [codes, zeros, scales] = parts;
  const auto bits = config.value("bits", config.value("w_bit", 4));
  std::string version = config.value("version", "gemm");
  std::transform(version.begin(), version.end(), version.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (bits != 4 || version != "gemm") {
    return unsupported(
        fmt::format("'{}': AWQ of {} bits in the layout '{}'; wok reads 4 bits in the layout gemm",
                    module.folder, bits, version));
  }
  if (codes->type != HfType::kI32 || codes->shape.size() != 2) {
    return module.wrong("qweight is no matrix of words");
  }
  GroupedSource::Shape shape{.rows = codes->dim(1) * kInWord, .cols = codes->dim(0), .bits = 4};
  const int64_t size = config.value("group_size", config.value("q_group_size", int64_t{128}));
  WOK_TRY(group, group_columns(module, size, shape.cols));
  shape.group = group;
  if (shape.rows < 1 || shape.cols < 1 || zeros->type != HfType::kI32 || !scales->is_float() ||
      zeros->shape != std::vector<int64_t>{shape.groups(), codes->dim(1)} ||
      scales->shape != std::vector<int64_t>{shape.groups(), shape.rows}) {
    return module.wrong(
        fmt::format("qzeros and scales are not those of {} outputs and {} inputs in groups of {}, "
                    "which the configuration demands",
                    shape.rows, shape.cols, group));
  }
  return make_grouped(std::make_shared<AwqSource>(std::move(shape), *codes, *zeros, *scales),
                      module, {codes, zeros, scales});
}

}  // namespace

const HfScheme kHfScheme_awq = {"awq", "qweight", read};

}  // namespace wok
