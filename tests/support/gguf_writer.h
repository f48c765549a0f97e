// Writes GGUF v3 bytes for tests: keys and tensors in order, right by construction; tests then
// damage what they want to see refused.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace wok::test {

class GgufWriter {
 public:
  void key(const std::string& name, const std::string& text) {
    begin_key(name, 8);
    put_string(keys_, text);
  }
  void key(const std::string& name, uint32_t value) {
    begin_key(name, 4);
    put(keys_, value);
  }
  void key(const std::string& name, float value) {
    begin_key(name, 6);
    put(keys_, value);
  }
  void key(const std::string& name, bool value) {
    begin_key(name, 7);
    put(keys_, static_cast<uint8_t>(value));
  }
  void key(const std::string& name, const std::vector<std::string>& texts) {
    begin_key(name, 9);
    put(keys_, uint32_t{8});
    put(keys_, static_cast<uint64_t>(texts.size()));
    for (const std::string& text : texts) put_string(keys_, text);
  }
  void key(const std::string& name, const std::vector<float>& values) {
    begin_key(name, 9);
    put(keys_, uint32_t{6});
    put(keys_, static_cast<uint64_t>(values.size()));
    for (const float v : values) put(keys_, v);
  }
  void key(const std::string& name, const std::vector<int32_t>& values) {
    begin_key(name, 9);
    put(keys_, uint32_t{5});
    put(keys_, static_cast<uint64_t>(values.size()));
    for (const int32_t v : values) put(keys_, v);
  }

  // shape: fastest first, as in the file.
  void tensor(const std::string& name, uint32_t type, const std::vector<int64_t>& shape,
              const std::vector<uint8_t>& data) {
    ++tensors_;
    put_string(infos_, name);
    put(infos_, static_cast<uint32_t>(shape.size()));
    for (const int64_t size : shape) put(infos_, size);
    put(infos_, type);
    put(infos_, static_cast<uint64_t>(data_.size()));
    data_.insert(data_.end(), data.begin(), data.end());
    data_.resize((data_.size() + 31) / 32 * 32);
  }

  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> out;
    put(out, uint32_t{0x46554747});
    put(out, uint32_t{3});
    put(out, tensors_);
    put(out, count_);
    out.insert(out.end(), keys_.begin(), keys_.end());
    out.insert(out.end(), infos_.begin(), infos_.end());
    out.resize((out.size() + 31) / 32 * 32);
    out.insert(out.end(), data_.begin(), data_.end());
    return out;
  }

 private:
  template <class T>
  static void put(std::vector<uint8_t>& to, T value) {
    const auto at = to.size();
    to.resize(at + sizeof(T));
    std::memcpy(to.data() + at, &value, sizeof(T));
  }
  static void put_string(std::vector<uint8_t>& to, const std::string& text) {
    put(to, static_cast<uint64_t>(text.size()));
    to.insert(to.end(), text.begin(), text.end());
  }
  void begin_key(const std::string& name, uint32_t type) {
    ++count_;
    put_string(keys_, name);
    put(keys_, type);
  }

  uint64_t tensors_ = 0, count_ = 0;
  std::vector<uint8_t> keys_, infos_, data_;
};

}  // namespace wok::test
