// GGUF bytes in which every field may lie: what the tests of refusals are made of. (GgufWriter
// beside it writes files that are right by construction.)
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/gguf.h"

namespace wok::test {

struct RawTensor {
  std::string name;
  std::vector<int64_t> shape;  // fastest first
  uint32_t type = 0;           // F32
  uint64_t offset = 0;
};

class RawGguf {
 public:
  uint32_t magic = 0x46554747, version = 3;
  std::optional<uint64_t> claimed_tensors, claimed_keys;  // instead of the true counts
  size_t alignment = 32;                                  // of the data; no key says so by itself
  std::vector<uint8_t> data;

  template <class T>
  RawGguf& scalar(const std::string& key, uint32_t type, T value) {
    begin(key, type);
    put(keys_, value);
    return *this;
  }
  RawGguf& text(const std::string& key, const std::string& value) {
    begin(key, 8);
    put_text(keys_, value, value.size());
    return *this;
  }
  // A string that says it has `length` bytes.
  RawGguf& text_claiming(const std::string& key, const std::string& value, uint64_t length) {
    begin(key, 8);
    put_text(keys_, value, length);
    return *this;
  }
  RawGguf& texts(const std::string& key, const std::vector<std::string>& values) {
    begin_array(key, 8, values.size());
    for (const std::string& value : values) put_text(keys_, value, value.size());
    return *this;
  }
  // `claimed`: a length that the elements do not have.
  template <class T>
  RawGguf& array(const std::string& key, uint32_t element_type, const std::vector<T>& values,
                 std::optional<uint64_t> claimed = std::nullopt) {
    begin_array(key, element_type, claimed.value_or(values.size()));
    for (const T value : values) put(keys_, value);
    return *this;
  }
  RawGguf& tensor(const RawTensor& tensor) {
    ++tensors_;
    put_text(infos_, tensor.name, tensor.name.size());
    put(infos_, static_cast<uint32_t>(tensor.shape.size()));
    for (const int64_t size : tensor.shape) put(infos_, size);
    put(infos_, tensor.type);
    put(infos_, tensor.offset);
    return *this;
  }

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> out;
    put(out, magic);
    put(out, version);
    put(out, claimed_tensors.value_or(tensors_));
    put(out, claimed_keys.value_or(key_count_));
    out.insert(out.end(), keys_.begin(), keys_.end());
    out.insert(out.end(), infos_.begin(), infos_.end());
    if (!data.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment);
    out.insert(out.end(), data.begin(), data.end());
    return out;
  }

 private:
  template <class T>
  static void put(std::vector<uint8_t>& to, T value) {
    const size_t at = to.size();
    to.resize(at + sizeof(T));
    std::memcpy(to.data() + at, &value, sizeof(T));
  }
  static void put_text(std::vector<uint8_t>& to, const std::string& text, uint64_t length) {
    put(to, length);
    to.insert(to.end(), text.begin(), text.end());
  }
  void begin(const std::string& key, uint32_t type) {
    ++key_count_;
    put_text(keys_, key, key.size());
    put(keys_, type);
  }
  void begin_array(const std::string& key, uint32_t element_type, uint64_t count) {
    begin(key, 9);
    put(keys_, element_type);
    put(keys_, count);
  }

  uint64_t tensors_ = 0, key_count_ = 0;
  std::vector<uint8_t> keys_, infos_;
};

// What a file that was accepted must hold, whatever its bytes were; "" or what does not. Reads the
// ends of every tensor, so that the address sanitizer sees one that lies outside.
inline std::string inconsistency(const ModelFile& file, std::span<const uint8_t> bytes) {
  uint8_t sum = 0;
  for (const ModelTensor& tensor : file.tensors()) {
    const std::string name(tensor.name);
    if (file.find_tensor(tensor.name) != &tensor) return name + " is not found by its name";
    if (tensor.dims < 1 || tensor.dims > 4) return name + " has a wrong number of dimensions";
    for (const int64_t size : tensor.shape) {
      if (size < 1) return name + " has an empty dimension";
    }
    if (tensor.format == nullptr) {
      if (!tensor.data.empty()) return name + " has data of an unknown type";
      continue;
    }
    const auto want = static_cast<unsigned __int128>(tensor.shape[0] / tensor.format->block) *
                      static_cast<unsigned __int128>(tensor.format->block_bytes) *
                      static_cast<unsigned __int128>(tensor.rows());
    if (want != tensor.data.size()) return name + " has data of another size than its shape";
    const uint8_t* begin = tensor.data.data();
    if (begin < bytes.data() || begin + tensor.data.size() > bytes.data() + bytes.size()) {
      return name + " lies outside the file";
    }
    sum ^= begin[0] ^ begin[tensor.data.size() - 1];
  }
  // The sum is used, so that the reads stay in the program.
  return file.file_bytes() == bytes.size() ? "" : "a wrong size" + std::string(sum % 1, ' ');
}

}  // namespace wok::test
