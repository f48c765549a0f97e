#include "quantizer/hf_pack.h"

#include "base/half.h"

namespace wok {
namespace {

constexpr int32_t kWordBits = 32;
// Nibble i of an AWQ word holds output kAwqOrder[i] of its eight.
constexpr int32_t kAwqOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};

template <class T>
SafetensorsEntry entry(std::string name, const char* type, std::vector<int64_t> shape,
                       const std::vector<T>& values) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  return {std::move(name), type, std::move(shape), {bytes, bytes + values.size() * sizeof(T)}};
}

// `count` fields of `bits` bits into words, the lowest first; at(i) is field i.
template <class At>
void put_stream(uint32_t* words, int64_t stride, int32_t bits, int64_t count, const At& at) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = i * bits;
    const uint64_t field = uint64_t{at(i)} << (place % kWordBits);
    words[place / kWordBits * stride] |= static_cast<uint32_t>(field);
    if (place % kWordBits + bits > kWordBits) {
      words[(place / kWordBits + 1) * stride] |= static_cast<uint32_t>(field >> kWordBits);
    }
  }
}

SafetensorsEntry scales_of(const std::string& name, const GroupedMatrix& m) {
  std::vector<uint16_t> out(m.scales.size());  // [groups, rows]
  for (int32_t g = 0; g < m.groups(); ++g) {
    for (int32_t r = 0; r < m.rows; ++r) {
      out[static_cast<size_t>(g) * m.rows + r] =
          float_to_half(m.scales[static_cast<size_t>(r) * m.groups() + g]);
    }
  }
  return entry(name + ".scales", "F16", {m.groups(), m.rows}, out);
}

}  // namespace

std::vector<SafetensorsEntry> pack_gptq(const std::string& name, const GroupedMatrix& m) {
  const int32_t bits = m.options.bits, groups = m.groups();
  const int64_t code_words = int64_t{m.cols} * bits / kWordBits;
  const int64_t zero_words = int64_t{m.rows} * bits / kWordBits;
  std::vector<uint32_t> codes(static_cast<size_t>(code_words * m.rows));
  for (int32_t r = 0; r < m.rows; ++r) {
    const uint8_t* row = m.codes.data() + static_cast<size_t>(r) * m.cols;
    put_stream(codes.data() + r, m.rows, bits, m.cols, [&](int64_t c) { return row[c]; });
  }
  std::vector<uint32_t> zeros(static_cast<size_t>(groups * zero_words));
  // A one in each field: the format takes it off whole words. Fields of 3 bits cross words.
  const bool crosses = kWordBits % bits != 0;
  const uint32_t ones = crosses ? 0 : 0xffffffffu / ((1u << bits) - 1);
  const uint32_t mask = (1u << bits) - 1;
  for (int32_t g = 0; g < groups; ++g) {
    uint32_t* words = zeros.data() + g * zero_words;
    put_stream(words, 1, bits, m.rows, [&](int64_t r) {
      const uint32_t zero = m.zeros[static_cast<size_t>(r) * groups + g];
      return crosses ? (zero - 1) & mask : zero;
    });
    for (int64_t i = 0; i < zero_words; ++i) words[i] -= ones;
  }
  std::vector<int32_t> index(m.cols);
  for (int32_t c = 0; c < m.cols; ++c) index[c] = m.group_at(c);
  return {entry(name + ".qweight", "I32", {code_words, m.rows}, codes),
          entry(name + ".qzeros", "I32", {groups, zero_words}, zeros), scales_of(name, m),
          entry(name + ".g_idx", "I32", {m.cols}, index)};
}

std::vector<SafetensorsEntry> pack_awq(const std::string& name, const GroupedMatrix& m) {
  const int32_t groups = m.groups(), words = m.rows / 8;
  const auto pack = [&](int32_t lines, const auto& at) {
    std::vector<uint32_t> out(static_cast<size_t>(lines) * words);
    for (int32_t line = 0; line < lines; ++line) {
      for (int32_t w = 0; w < words; ++w) {
        uint32_t word = 0;
        for (int32_t i = 0; i < 8; ++i) {
          word |= static_cast<uint32_t>(at(line, 8 * w + kAwqOrder[i])) << (4 * i);
        }
        out[static_cast<size_t>(line) * words + w] = word;
      }
    }
    return out;
  };
  const auto code = [&](int32_t c, int32_t r) {
    return m.codes[static_cast<size_t>(r) * m.cols + c];
  };
  const auto zero = [&](int32_t g, int32_t r) {
    return m.zeros[static_cast<size_t>(r) * groups + g];
  };
  return {entry(name + ".qweight", "I32", {m.cols, words}, pack(m.cols, code)),
          entry(name + ".qzeros", "I32", {groups, words}, pack(groups, zero)), scales_of(name, m)};
}

}  // namespace wok
