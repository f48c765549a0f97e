// GPTQ checkpoints (arXiv 2210.17323), as GPTQModel and AutoGPTQ write them: codes packed down the
// inputs, zero points along the outputs. w[input, output] = scale * (code - zero), where the first
// version of the format stores zero - 1.
#include <fmt/format.h>

#include <mutex>

#include "base/half.h"
#include "base/log.h"
#include "formats/grouped_source.h"

namespace wok {
namespace {

using Json = nlohmann::json;

class GptqSource final : public GroupedSource {
 public:
  GptqSource(Shape shape, const HfTensor& codes, const HfTensor& zeros, const HfTensor& scales,
             bool minus_one)
      : GroupedSource(std::move(shape)),
        codes_(codes.data.data()),
        zeros_(zeros.data.data()),
        scales_(scales),
        minus_one_(minus_one) {}

  void read_codes(int64_t begin, int64_t count, uint8_t* out) const override {
    const Shape& s = shape();
    if (s.bits == 3) {
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t c = 0; c < s.cols; ++c) {
          out[r * s.cols + c] =
              static_cast<uint8_t>(stream_field(codes_ + 4 * (begin + r), s.rows, 3, c));
        }
      }
      return;
    }
    const int32_t in_word = 32 / s.bits;
    const uint32_t mask = (1u << s.bits) - 1;
    for (int64_t c = 0; c < s.cols; c += in_word) {
      const uint8_t* words = codes_ + 4 * (c / in_word * s.rows + begin);
      for (int64_t r = 0; r < count; ++r) {
        auto word = load_unaligned<uint32_t>(words + 4 * r);
        uint8_t* to = out + r * s.cols + c;
        for (int32_t i = 0; i < in_word; ++i, word >>= s.bits) {
          to[i] = static_cast<uint8_t>(word & mask);
        }
      }
    }
  }

  void read_factors(int64_t row, float* scales, float* zeros) const override {
    const Shape& s = shape();
    for (int64_t g = 0; g < s.groups(); ++g) {
      scales[g] = scales_.float_at(g * s.rows + row);
      zeros[g] = static_cast<float>(zero(g, row));
    }
  }

  // As the file has it, or with the one that the first version took off.
  uint32_t zero(int64_t g, int64_t row) const {
    const Shape& s = shape();
    const uint8_t* words = zeros_ + g * (s.rows * s.bits / 32) * 4;
    if (s.bits == 3) {
      const uint32_t field = stream_field(words, 1, 3, row);
      return minus_one_ ? (field + 1) & 7 : field;
    }
    // The one was taken off whole words, so that a field may have borrowed from its neighbour.
    const int64_t in_word = 32 / s.bits;
    auto word = load_unaligned<uint32_t>(words + 4 * (row / in_word));
    if (minus_one_) word += 0xffffffffu / ((1u << s.bits) - 1);
    return word >> (row % in_word * s.bits) & ((1u << s.bits) - 1);
  }

 private:
  const uint8_t* codes_;
  const uint8_t* zeros_;
  const HfTensor& scales_;
  bool minus_one_;
};

bool has_shape(const HfTensor& tensor, HfType type, int64_t rows, int64_t cols) {
  return tensor.type == type && tensor.shape == std::vector<int64_t>{rows, cols};
}

// All zero points of a symmetric checkpoint are the middle code: what is stored tells the version,
// whatever the configuration says, and some say the wrong one.
bool stored_minus_one(const GptqSource& as_stored, const HfModule& module, bool configured) {
  const GroupedSource::Shape& s = as_stored.shape();
  const uint32_t middle = 1u << (s.bits - 1);
  bool first = true, second = true;
  for (int64_t g = 0; g < s.groups(); ++g) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const uint32_t zero = as_stored.zero(g, r);
      first = first && zero == middle - 1;
      second = second && zero == middle;
    }
  }
  const bool minus_one = first ? true : second ? false : configured;
  if (minus_one != configured) {
    static std::once_flag once;  // not for each of hundreds of modules
    std::call_once(once, [&] {
      log::warn(
          "'{}': the configuration says GPTQ {}, the zero points of '{}' are those of {}; the zero "
          "points win",
          module.folder, configured ? "v1" : "v2", module.name, configured ? "v2" : "v1");
    });
  }
  return minus_one;
}

// What `dynamic` says about this module is not read: its tensors have to fit the general values.
Result<HfMatrix> read(const HfModule& module, const Json& config) {
  WOK_TRY(parts, find_packed_parts(module));
  const auto [codes, zeros, scales] = parts;
  const auto bits = static_cast<int32_t>(config.value("bits", 4));
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8) {
    return unsupported(
        fmt::format("'{}': GPTQ of {} bits; wok reads 2, 3, 4 and 8", module.folder, bits));
  }
  if (codes->type != HfType::kI32 || codes->shape.size() != 2 || codes->dim(1) < 1 ||
      codes->dim(0) * 32 % bits != 0) {
    return module.wrong("qweight is no matrix of whole words");
  }
  GroupedSource::Shape shape{
      .rows = codes->dim(1), .cols = codes->dim(0) * 32 / bits, .bits = bits};
  WOK_TRY(group, group_columns(module, config.value("group_size", int64_t{128}), shape.cols));
  shape.group = group;
  if (shape.rows * bits % 32 != 0 || shape.cols < 1 ||
      !has_shape(*zeros, HfType::kI32, shape.groups(), shape.rows * bits / 32) ||
      !scales->is_float() || scales->shape != std::vector<int64_t>{shape.groups(), shape.rows}) {
    return module.wrong(fmt::format(
        "qzeros and scales are not those of {} outputs and {} inputs in groups of {} at {} bits, "
        "which the configuration demands",
        shape.rows, shape.cols, group, bits));
  }
  if (const HfTensor* index = module.find("g_idx"); index != nullptr && index->elements() > 0) {
    if (index->type != HfType::kI32 || index->elements() != shape.cols) {
      return module.wrong(fmt::format("g_idx does not have the {} inputs", shape.cols));
    }
    for (int64_t c = 0; c < shape.cols; ++c) {
      shape.group_of.push_back(load_unaligned<int32_t>(index->data.data() + 4 * c));
    }
  }
  std::string version = config.value("checkpoint_format", config.value("format", "gptq"));
  if (version != "gptq" && version != "gptq_v2") {
    return unsupported(fmt::format("'{}': GPTQ in the format '{}'; wok reads gptq and gptq_v2",
                                   module.folder, version));
  }
  bool minus_one = version == "gptq";
  if (config.value("sym", true)) {
    minus_one =
        stored_minus_one(GptqSource(shape, *codes, *zeros, *scales, false), module, minus_one);
  }
  return make_grouped(
      std::make_shared<GptqSource>(std::move(shape), *codes, *zeros, *scales, minus_one), module,
      {codes, zeros, scales});
}

}  // namespace

const HfScheme kHfScheme_gptq = {"gptq", "qweight", read};

}  // namespace wok
