#include "quantizer/imatrix.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

#include "formats/gguf_file_writer.h"

namespace wok {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

}  // namespace

void ImportanceMatrix::finish(Entry& entry) {
  entry.means.resize(entry.sums.size());
  for (int64_t s = 0; s < entry.slabs; ++s) {
    // An expert that no token reached: all columns count the same.
    const float count = entry.counts[s];
    for (int64_t c = s * entry.cols; c < (s + 1) * entry.cols; ++c) {
      entry.means[c] = count > 0 ? entry.sums[c] / count : 1.0f;
    }
  }
}

void ImportanceMatrix::put(const std::string& tensor, const std::vector<const Gram*>& slabs) {
  if (slabs.empty() || slabs[0]->cols() == 0) return;
  Entry entry{.cols = slabs[0]->cols(), .slabs = static_cast<int64_t>(slabs.size())};
  for (const Gram* gram : slabs) {
    const auto count = static_cast<float>(gram->rows());
    for (const float mean : gram->importance()) entry.sums.push_back(mean * count);
    entry.counts.push_back(count);
  }
  finish(entry);
  entries_[tensor + ".weight"] = std::move(entry);
}

void ImportanceMatrix::add_layer(int32_t layer, const LayerGrams& grams) {
  const auto all = [&](std::initializer_list<const char*> tensors,
                       const std::vector<const Gram*>& slabs) {
    for (const char* name : tensors) put(fmt::format("blk.{}.{}", layer, name), slabs);
  };
  all({"attn_q", "attn_k", "attn_v"}, {&grams.attention});
  all({"attn_output"}, {&grams.attention_out});
  const bool experts = !grams.experts.empty();
  if (experts) {
    std::vector<const Gram*> in, down;
    for (const Gram& g : grams.experts) in.push_back(&g);
    for (const Gram& g : grams.expert_down) down.push_back(&g);
    all({"ffn_gate_exps", "ffn_up_exps"}, in);
    all({"ffn_down_exps"}, down);
    all({"ffn_gate_inp", "ffn_gate_shexp", "ffn_up_shexp"}, {&grams.feed_forward});
    all({"ffn_down_shexp"}, {&grams.down});
  } else {
    all({"ffn_gate", "ffn_up"}, {&grams.feed_forward});
    all({"ffn_down"}, {&grams.down});
  }
}

Result<ImportanceMatrix> ImportanceMatrix::measure(
    Calibration& calibration, const std::function<bool(double share)>& progress) {
  ImportanceMatrix out;
  const double chunks = double{1} * calibration.layers() * calibration.chunks();
  for (int32_t i = 0; i < calibration.layers(); ++i) {
    LayerGrams grams;
    grams.squares_only = true;
    WOK_RETURN_IF_ERROR(calibration.next_layer(&grams, [&](int32_t done) {
      return progress((double{1} * i * calibration.chunks() + done) / chunks);
    }));
    out.add_layer(i, grams);
  }
  return out;
}

Status ImportanceMatrix::write(const std::string& path, const std::string& text, int32_t chunks,
                               int32_t chunk_tokens) const {
  GgufFileWriter writer(path);
  writer.key_string("general.type", "imatrix");
  writer.key_strings("imatrix.datasets", std::array{text});
  writer.key_u32("imatrix.chunk_count", static_cast<uint32_t>(chunks));
  writer.key_u32("imatrix.chunk_size", static_cast<uint32_t>(chunk_tokens));
  for (const auto& [name, e] : entries_) {
    const int64_t sums[] = {e.cols, e.slabs}, counts[] = {1, e.slabs};
    writer.tensor(name + std::string(kSums), kWeightFormat_f32.gguf_type, sums,
                  e.sums.size() * sizeof(float));
    writer.tensor(name + std::string(kCounts), kWeightFormat_f32.gguf_type, counts,
                  e.counts.size() * sizeof(float));
  }
  WOK_RETURN_IF_ERROR(writer.begin());
  for (const auto& [name, e] : entries_) {
    for (const std::vector<float>* values : {&e.sums, &e.counts}) {
      WOK_RETURN_IF_ERROR(writer.write(
          {reinterpret_cast<const uint8_t*>(values->data()), values->size() * sizeof(float)}));
      WOK_RETURN_IF_ERROR(writer.end_tensor());
    }
  }
  return writer.finish();
}

Result<ImportanceMatrix> ImportanceMatrix::read(const std::string& path) {
  WOK_TRY(file, ModelFile::open(path));
  ImportanceMatrix out;
  for (const ModelTensor& sums : file.tensors()) {
    if (!sums.name.ends_with(kSums)) continue;
    const std::string name(sums.name.substr(0, sums.name.size() - kSums.size()));
    const ModelTensor* counts = file.find_tensor(name + std::string(kCounts));
    const auto wrong = [&](const char* what) {
      return invalid(fmt::format("'{}': tensor '{}' {}", path, sums.name, what));
    };
    if (counts == nullptr) return wrong("has no counts beside it");
    if (sums.format != &kWeightFormat_f32 || counts->format != &kWeightFormat_f32 ||
        counts->shape[0] * counts->rows() != sums.rows()) {
      return wrong("or its counts are not of type F32 and of fitting shapes");
    }
    Entry entry{.cols = sums.shape[0], .slabs = sums.rows()};
    entry.sums.resize(static_cast<size_t>(entry.cols * entry.slabs));
    entry.counts.resize(static_cast<size_t>(entry.slabs));
    std::memcpy(entry.sums.data(), sums.data.data(), sums.data.size());
    std::memcpy(entry.counts.data(), counts->data.data(), counts->data.size());
    for (const std::vector<float>* values : {&entry.sums, &entry.counts}) {
      for (const float v : *values) {
        if (!(v >= 0) || !std::isfinite(v)) return wrong("or its counts hold what is no square");
      }
    }
    out.finish(entry);
    out.entries_[name] = std::move(entry);
  }
  if (out.entries_.empty()) {
    return invalid(fmt::format("'{}' is no importance matrix: no tensor ends in {}", path, kSums));
  }
  return out;
}

Result<const float*> ImportanceMatrix::find(std::string_view tensor, int64_t cols,
                                            int64_t slabs) const {
  const auto it = entries_.find(tensor);
  if (it == entries_.end()) return static_cast<const float*>(nullptr);
  const Entry& e = it->second;
  if (e.cols != cols || e.slabs != slabs) {
    return invalid(
        fmt::format("the importance matrix has {} x {} values for '{}', which has {} x "
                    "{} columns; it is of another model",
                    e.slabs, e.cols, tensor, slabs, cols));
  }
  return e.means.data();
}

}  // namespace wok
