// compressed-tensors, the format of llm-compressor: integers of 1 to 8 bits in a dense stream along
// the inputs (pack-quantized), whole bytes (int-quantized) or FP8 (float-quantized).
// w = scale * (code - zero); both are stored with 2^(bits - 1) added.
#include <fmt/format.h>

#include <regex>

#include "base/half.h"
#include "formats/grouped_source.h"
#include "formats/hf_fp8.h"

namespace wok {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxPattern = 1000;  // characters; parsing one calls itself

class PackedSource final : public GroupedSource {
 public:
  PackedSource(Shape shape, const HfTensor& codes, const HfTensor& scales, const HfTensor* zeros)
      : GroupedSource(std::move(shape)), codes_(codes), scales_(scales), zeros_(zeros) {}

  void read_codes(int64_t begin, int64_t count, uint8_t* out) const override {
    const Shape& s = shape();
    for (int64_t r = 0; r < count; ++r, out += s.cols) {
      const uint8_t* words = codes_.data.data() + 4 * (begin + r) * codes_.dim(1);
      for (int64_t c = 0; c < s.cols; ++c) {
        out[c] = static_cast<uint8_t>(stream_field(words, 1, s.bits, c));
      }
    }
  }

  void read_factors(int64_t row, float* scales, float* zeros) const override {
    const Shape& s = shape();
    for (int64_t g = 0; g < s.groups(); ++g) {
      scales[g] = scales_.float_at(row * s.groups() + g);
      zeros[g] = zeros_ == nullptr ? static_cast<float>(1 << (s.bits - 1))
                                   : static_cast<float>(stream_field(zeros_->data.data() + 4 * g,
                                                                     s.groups(), s.bits, row));
    }
  }

 private:
  const HfTensor& codes_;
  const HfTensor& scales_;
  const HfTensor* zeros_;
};

class ByteSource final : public GroupedSource {
 public:
  ByteSource(Shape shape, const HfTensor& codes, const HfTensor& scales, const HfTensor* zeros)
      : GroupedSource(std::move(shape)), codes_(codes), scales_(scales), zeros_(zeros) {}

  void read_codes(int64_t begin, int64_t count, uint8_t* out) const override {
    const int64_t cols = shape().cols;
    const uint8_t* from = codes_.data.data() + begin * cols;
    for (int64_t i = 0; i < count * cols; ++i) out[i] = from[i] ^ 0x80;
  }

  void read_factors(int64_t row, float* scales, float* zeros) const override {
    const int64_t groups = shape().groups(), factors = scales_.elements();
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t at = factors == 1 ? 0 : row * groups + g;
      scales[g] = scales_.float_at(at);
      zeros[g] = 128;
      if (zeros_ != nullptr) zeros[g] += static_cast<int8_t>(zeros_->data[at]);
    }
  }

 private:
  const HfTensor& codes_;
  const HfTensor& scales_;
  const HfTensor* zeros_;
};

// Whether an entry of `targets` or `ignore` names this module: a class, a name, or "re:" and a
// regular expression that matches from its start.
bool names(const Json& list, const std::string& module) {
  if (!list.is_array()) return false;
  for (const Json& entry : list) {
    if (!entry.is_string()) continue;
    const std::string text = entry.get<std::string>();
    if (text == module || text == "Linear") return true;
    if (!text.starts_with("re:") || text.size() > kMaxPattern) continue;
    try {
      // The pattern is a stranger's: in polynomial time, which libstdc++ has to be asked for.
      const std::regex pattern(text.substr(3),
                               std::regex::ECMAScript | std::regex_constants::__polynomial);
      if (std::regex_search(module, pattern, std::regex_constants::match_continuous)) return true;
    } catch (const std::regex_error&) {  // not one that can match
    }
  }
  return false;
}

// The group of the configuration that the module is of: the one that names it best.
Json find_group(const Json& config, const std::string& module) {
  Json found;
  bool by_class = false;
  const Json groups = config.value("config_groups", Json::object());
  if (!groups.is_object()) return found;
  for (const auto& [name, group] : groups.items()) {
    if (!group.is_object()) continue;
    const Json targets = group.value("targets", Json::array());
    if (!names(targets, module)) continue;
    const bool general = targets.size() == 1 && targets[0] == "Linear";
    if (found.is_null() || (by_class && !general)) {
      found = group;
      by_class = general;
    }
  }
  return found;
}

Result<HfMatrix> read_packed(const HfModule& module, const Json& args) {
  const HfTensor* codes = module.find("weight_packed");
  const HfTensor* scales = module.find("weight_scale");
  const HfTensor* logical = module.find("weight_shape");
  const HfTensor* zeros = module.find("weight_zero_point");
  const auto bits = static_cast<int32_t>(args.value("num_bits", 4));
  if (codes->type != HfType::kI32) {
    return unsupported(
        fmt::format("'{}': '{}' is packed as {}; of compressed-tensors' packed "
                    "formats wok reads pack-quantized",
                    module.folder, module.name, codes->type_name));
  }
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8) {
    return unsupported(
        fmt::format("'{}': weights of {} bits; wok reads 2, 3, 4 and 8", module.folder, bits));
  }
  if (scales == nullptr || !scales->is_float() || logical == nullptr ||
      logical->type != HfType::kI64 || logical->elements() != 2 || codes->shape.size() != 2) {
    return module.wrong("weight_scale or weight_shape is missing or of another type");
  }
  GroupedSource::Shape shape{.rows = load_unaligned<int64_t>(logical->data.data()),
                             .cols = load_unaligned<int64_t>(logical->data.data() + 8),
                             .bits = bits};
  if (shape.rows < 1 || shape.cols < 1 || shape.cols > (1 << 24) || codes->dim(0) != shape.rows ||
      codes->dim(1) != (shape.cols * bits + 31) / 32) {
    return module.wrong("weight_packed is not of the size that weight_shape says");
  }
  const Json size = args.value("group_size", Json());
  WOK_TRY(group,
          group_columns(module, size.is_number_integer() ? size.get<int64_t>() : -1, shape.cols));
  shape.group = group;
  if (scales->elements() != shape.rows * shape.groups()) {
    return module.wrong(fmt::format("{} scales for {} rows of {} groups", scales->elements(),
                                    shape.rows, shape.groups()));
  }
  if (!args.value("symmetric", true) && zeros == nullptr) {
    return module.wrong("it is not symmetric and has no weight_zero_point");
  }
  if (zeros != nullptr && (zeros->type != HfType::kI32 ||
                           zeros->elements() != (shape.rows * bits + 31) / 32 * shape.groups())) {
    return module.wrong("weight_zero_point is not of the matrix's size");
  }
  const HfTensor* index = module.find("weight_g_idx");
  if (index != nullptr && index->type == HfType::kI32 && index->elements() == shape.cols &&
      load_unaligned<int32_t>(index->data.data()) != -1) {
    for (int64_t c = 0; c < shape.cols; ++c) {
      shape.group_of.push_back(load_unaligned<int32_t>(index->data.data() + 4 * c));
    }
  }
  return make_grouped(std::make_shared<PackedSource>(std::move(shape), *codes, *scales, zeros),
                      module, {codes, scales, zeros});
}

Result<HfMatrix> read_bytes(const HfModule& module, const Json& args) {
  const HfTensor* codes = module.find("weight");
  const HfTensor* scales = module.find("weight_scale");
  const HfTensor* zeros = module.find("weight_zero_point");
  if (codes->shape.size() != 2 || scales == nullptr || !scales->is_float()) {
    return module.wrong("its weight is no matrix, or weight_scale is missing");
  }
  GroupedSource::Shape shape{.rows = codes->dim(0), .cols = codes->dim(1), .bits = 8};
  const Json size = args.value("group_size", Json());
  WOK_TRY(group,
          group_columns(module, size.is_number_integer() ? size.get<int64_t>() : -1, shape.cols));
  shape.group = group;
  const int64_t factors = scales->elements();
  if (shape.rows < 1 || shape.cols < 1 ||
      (factors != 1 && factors != shape.rows * shape.groups())) {
    return module.wrong(fmt::format("{} scales for {} rows", factors, shape.rows));
  }
  if (zeros != nullptr && (zeros->type != HfType::kI8 || zeros->elements() != factors)) {
    return module.wrong("weight_zero_point is not of the scales' size");
  }
  return make_grouped(std::make_shared<ByteSource>(std::move(shape), *codes, *scales, zeros),
                      module, {codes, scales, zeros});
}

Result<HfMatrix> read(const HfModule& module, const Json& config) {
  const Json group = find_group(config, module.name);
  if (!group.is_object()) {
    return module.wrong("it is quantized, and no group of the configuration names it");
  }
  const Json args = group.value("weights", Json::object());
  if (!args.is_object()) return module.wrong("its group does not say how weights are stored");
  if (module.find("weight_packed") != nullptr) return read_packed(module, args);
  const HfTensor* weight = module.find("weight");
  if (weight->type == HfType::kI8) return read_bytes(module, args);
  std::vector<int64_t> block;
  if (const Json sizes = args.value("block_structure", Json()); sizes.is_array()) {
    for (const Json& n : sizes) block.push_back(n.is_number_integer() ? n.get<int64_t>() : 0);
  }
  return read_fp8(module, block);
}

}  // namespace

const HfScheme kHfScheme_compressed_tensors = {"compressed-tensors", "weight_packed", read};

}  // namespace wok
