// A tiny model taken apart: tests drop or change a key or a tensor and write the rest as it was.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/support/raw_gguf.h"
#include "tests/support/tiny_model.h"

namespace wok::test {

class EditedModel {
 public:
  struct Tensor {
    RawTensor info;  // the offset is filled in by bytes()
    std::vector<uint8_t> data;
  };

  explicit EditedModel(const TinyShape& shape = {}) {
    const std::vector<uint8_t> bytes = TinyWriter(shape, 1).bytes();
    const auto file = parse_gguf(bytes, "tiny.gguf");
    WOK_CHECK(file.ok(), "an undamaged file");
    for (const ModelTensor& t : file->tensors()) {
      Tensor copy;
      copy.info = {std::string(t.name), {t.shape, t.shape + t.dims}, t.type, 0};
      copy.data.assign(t.data.begin(), t.data.end());
      tensors.push_back(std::move(copy));
    }
    const std::string a = shape.architecture + ".";
    text("general.architecture", shape.architecture);
    const auto take_int = [&](const std::string& key) {
      if (const auto value = *file->get_int(key)) whole(key, *value);
    };
    for (const char* name :
         {"block_count", "embedding_length", "feed_forward_length", "attention.head_count",
          "attention.head_count_kv", "attention.key_length", "attention.value_length",
          "context_length", "attention.sliding_window", "expert_count", "expert_used_count",
          "expert_feed_forward_length", "expert_shared_feed_forward_length", "rope.dimension_count",
          "rope.scaling.original_context_length"}) {
      take_int(a + name);
    }
    for (const char* name :
         {"attention.layer_norm_rms_epsilon", "rope.freq_base", "embedding_scale", "residual_scale",
          "attention.scale", "logit_scale", "attn_logit_softcapping", "final_logit_softcapping",
          "rope.scaling.attn_factor"}) {
      if (const auto value = *file->get_float(a + name)) real(a + name, *value);
    }
  }

  // Each sets the key, instead of what it was.
  void whole(const std::string& key, int64_t value) {
    set(key, [=](RawGguf& to) { to.scalar(key, 11, value); });
  }
  void real(const std::string& key, double value) {
    set(key, [=](RawGguf& to) { to.scalar(key, 6, static_cast<float>(value)); });
  }
  void text(const std::string& key, const std::string& value) {
    set(key, [=](RawGguf& to) { to.text(key, value); });
  }
  void wholes(const std::string& key, const std::vector<int32_t>& values) {
    set(key, [=](RawGguf& to) { to.array(key, 5, values); });
  }
  void texts(const std::string& key, const std::vector<std::string>& values) {
    set(key, [=](RawGguf& to) { to.texts(key, values); });
  }
  void reals(const std::string& key, const std::vector<float>& values) {
    set(key, [=](RawGguf& to) { to.array(key, 6, values); });
  }
  void drop(const std::string& key) {
    std::erase_if(keys_, [&](const auto& entry) { return entry.first == key; });
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto& [key, write] : keys_) names.push_back(key);
    return names;
  }

  Tensor& tensor(const std::string& name) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const Tensor& t) { return t.info.name == name; });
    WOK_CHECK(found != tensors.end(), "a tensor of the tiny model");
    return *found;
  }
  // F32.
  void add_vector(const std::string& name, const std::vector<float>& values) {
    Tensor added;
    added.info = {name, {static_cast<int64_t>(values.size())}, 0, 0};
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    added.data.assign(bytes, bytes + values.size() * sizeof(float));
    tensors.push_back(std::move(added));
  }

  std::vector<uint8_t> bytes() const {
    RawGguf out;
    for (const auto& [key, write] : keys_) write(out);
    for (const Tensor& t : tensors) {
      RawTensor info = t.info;
      info.offset = out.data.size();
      out.tensor(info);
      out.data.insert(out.data.end(), t.data.begin(), t.data.end());
      out.data.resize((out.data.size() + 31) / 32 * 32);
    }
    return out.bytes();
  }

  std::vector<Tensor> tensors;

 private:
  using Write = std::function<void(RawGguf&)>;
  void set(const std::string& key, Write write) {
    for (auto& entry : keys_) {
      if (entry.first == key) return void(entry.second = std::move(write));
    }
    keys_.emplace_back(key, std::move(write));
  }

  std::vector<std::pair<std::string, Write>> keys_;
};

}  // namespace wok::test
