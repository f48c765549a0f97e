// Rows of integer codes with a scale and a zero point a group of columns: what GPTQ, AWQ and
// compressed-tensors have in common. Each says how to get at codes and factors; this makes rows.
#pragma once

#include <memory>
#include <vector>

#include "formats/hf_scheme.h"

namespace wok {

class GroupedSource : public RowSource {
 public:
  struct Shape {
    int64_t rows = 0, cols = 0;
    int32_t bits = 0;
    int64_t group = 0;                   // columns of a group
    std::vector<int32_t> group_of = {};  // of each column; empty: column / group
    int64_t groups() const { return (cols + group - 1) / group; }
  };
  explicit GroupedSource(Shape shape) : shape_(std::move(shape)) {}

  // Codes of rows [begin, begin + count) to [count, cols], in the inputs' own order.
  virtual void read_codes(int64_t begin, int64_t count, uint8_t* codes) const = 0;
  // Of one row, [groups] each.
  virtual void read_factors(int64_t row, float* scales, float* zeros) const = 0;

  const Shape& shape() const { return shape_; }
  void read_rows(int64_t begin, int64_t count, uint8_t* out) const override;
  std::span<const int32_t> column_order() const override { return order_; }

  // Reads all factors once, refusing such as no weight can have, and settles on the packed form.
  Status prepare(const HfModule& module);
  const WeightFormat* format() const { return format_; }

 private:
  bool order_by_groups();

  Shape shape_;
  const WeightFormat* format_ = nullptr;
  std::vector<int32_t> order_;
};

// What a module of GPTQ's or AWQ's has. Errors: kInvalid where one is missing.
struct PackedParts {
  const HfTensor* codes = nullptr;   // qweight
  const HfTensor* zeros = nullptr;   // qzeros
  const HfTensor* scales = nullptr;  // scales
};
Result<PackedParts> find_packed_parts(const HfModule& module);

// Prepares the source and wraps it. `stored`: the module's tensors, for identity and size.
Result<HfMatrix> make_grouped(std::shared_ptr<GroupedSource> source, const HfModule& module,
                              std::initializer_list<const HfTensor*> stored);

// The width of group that a configuration gives, for so many columns. -1 is one group a row.
Result<int64_t> group_columns(const HfModule& module, int64_t group_size, int64_t cols);

// Field i of a dense little-endian stream of `bits`-bit fields over words `stride` words apart.
uint32_t stream_field(const uint8_t* words, int64_t stride, int32_t bits, int64_t i);

}  // namespace wok
