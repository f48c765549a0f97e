// A Hugging Face folder in memory: read, damaged as a test likes, written somewhere else.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace wok::test {

struct RawHfTensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<uint8_t> data;

  template <class T>
  void set(size_t i, T value) {
    ASSERT_LE((i + 1) * sizeof(T), data.size());
    std::memcpy(data.data() + i * sizeof(T), &value, sizeof(T));
  }
};

inline std::vector<uint8_t> read_bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_bytes(const std::string& path, const void* data, size_t size) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  ASSERT_TRUE(stream.good()) << path;
}

struct HfFiles {
  nlohmann::json config;
  std::map<std::string, RawHfTensor> tensors;

  // A folder of one safetensors file.
  static HfFiles read(const std::string& folder) {
    HfFiles out;
    std::ifstream stream(folder + "/config.json");
    out.config = nlohmann::json::parse(stream);
    const std::vector<uint8_t> bytes = read_bytes(folder + "/model.safetensors");
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length));
    const auto* text = reinterpret_cast<const char*>(bytes.data()) + sizeof(length);
    const nlohmann::json header = nlohmann::json::parse(text, text + length);
    const uint8_t* data = bytes.data() + sizeof(length) + length;
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      RawHfTensor& tensor = out.tensors[name];
      tensor.dtype = entry.at("dtype");
      tensor.shape = entry.at("shape").get<std::vector<int64_t>>();
      const std::vector<uint64_t> range = entry.at("data_offsets");
      tensor.data.assign(data + range[0], data + range[1]);
    }
    return out;
  }

  std::vector<uint8_t> safetensors() const {
    nlohmann::json header;
    std::vector<uint8_t> data;
    for (const auto& [name, tensor] : tensors) {
      header[name] = {{"dtype", tensor.dtype},
                      {"shape", tensor.shape},
                      {"data_offsets", {data.size(), data.size() + tensor.data.size()}}};
      data.insert(data.end(), tensor.data.begin(), tensor.data.end());
    }
    return safetensors_of(header.dump(), data);
  }

  static std::vector<uint8_t> safetensors_of(const std::string& header,
                                             const std::vector<uint8_t>& data) {
    const uint64_t length = header.size();
    std::vector<uint8_t> out(sizeof(length) + length + data.size());
    std::memcpy(out.data(), &length, sizeof(length));
    std::memcpy(out.data() + sizeof(length), header.data(), length);
    if (!data.empty()) std::memcpy(out.data() + sizeof(length) + length, data.data(), data.size());
    return out;
  }

  void write(const std::string& folder) const {
    std::filesystem::create_directories(folder);
    const std::string text = config.dump();
    write_bytes(folder + "/config.json", text.data(), text.size());
    const std::vector<uint8_t> bytes = safetensors();
    write_bytes(folder + "/model.safetensors", bytes.data(), bytes.size());
  }
};

}  // namespace wok::test
