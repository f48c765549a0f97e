// Writes a GGUF v3 file: keys, then tensors in the order they were announced. The file has its name
// only when it is whole: until then it is a hidden one beside it, which goes away with the writer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace wok {

class GgufFileWriter {
 public:
  explicit GgufFileWriter(std::string path) : path_(std::move(path)) {}
  ~GgufFileWriter();
  GgufFileWriter(const GgufFileWriter&) = delete;
  GgufFileWriter& operator=(const GgufFileWriter&) = delete;

  // value: the bytes that a file has after the key's type.
  void key(std::string_view name, uint32_t type, std::span<const uint8_t> value);
  void key_u32(std::string_view name, uint32_t value);
  void key_string(std::string_view name, std::string_view value);
  void key_strings(std::string_view name, std::span<const std::string> values);
  void tensor(std::string_view name, uint32_t type, std::span<const int64_t> shape, uint64_t bytes);

  // Opens the file and writes all that was said so far. Errors: kIo says what to do.
  Status begin();
  // The next bytes of the tensors, which follow one another; end_tensor() after each pads it.
  Status write(std::span<const uint8_t> data);
  Status end_tensor();
  // Gives the file its name, in place of one that was there.
  Status finish();

  uint64_t bytes() const { return written_; }

 private:
  Error failed(const char* what, int code) const;

  std::string path_, part_;
  int fd_ = -1;
  std::vector<uint8_t> keys_, infos_;
  uint64_t key_count_ = 0, tensor_count_ = 0, offset_ = 0, written_ = 0;
};

}  // namespace wok
