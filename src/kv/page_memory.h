// The memory behind the pages: one anonymous mapping, reserved at start, never grown. A page holds
// kPageTokens tokens of every layer: for each layer and KV head the transposed keys
// [head_dim, kPageTokens], then the values [kPageTokens, head_dim].
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "kernels/kernels.h"
#include "kv/kv_format.h"

namespace wok {

struct KvShape {
  int32_t layers = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  const KvFormat* format = &kKvFormat_f16;

  size_t half_bytes() const {  // keys, or values, of one head in one page
    return static_cast<size_t>(head_dim) * kPageTokens * format->element_bytes;
  }
  size_t page_bytes() const { return 2 * half_bytes() * kv_heads * layers; }
};

class PageMemory {
 public:
  // Errors: kNoMemory.
  static Result<PageMemory> create(const KvShape& shape, int32_t pages);
  PageMemory() = default;
  PageMemory(PageMemory&& other) noexcept;
  PageMemory& operator=(PageMemory&& other) noexcept;
  ~PageMemory();

  const KvShape& shape() const { return shape_; }
  int32_t pages() const { return pages_; }
  KvView view(int32_t layer, int32_t kv_head) const {
    const size_t offset =
        2 * shape_.half_bytes() * (static_cast<size_t>(layer) * shape_.kv_heads + kv_head);
    return {data_, shape_.page_bytes(), offset, offset + shape_.half_bytes()};
  }
  // Has the system supply and clear the memory of pages [first, first + count) now, where it can;
  // else that happens as they are first written.
  void populate(int32_t first, int32_t count) const;

 private:
  KvShape shape_;
  int32_t pages_ = 0;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace wok
