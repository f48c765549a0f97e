#include "quantizer/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "formats/gguf_file_writer.h"
#include "quantizer/encode.h"

namespace wok {
namespace {

constexpr uint32_t kQuantizationVersion = 2;
constexpr int64_t kStretchWeights = int64_t{1} << 22;  // 16 MiB of floats at a time

bool is_exact(const WeightFormat& format) {
  return format.codes == nullptr;
}

class Quantizer {
 public:
  Quantizer(const ModelFile& file, const std::string& out, const Mixture& mixture,
            const ImportanceMatrix* importance, ComputePool& pool)
      : file_(file), mixture_(mixture), importance_(importance), pool_(pool), writer_(out) {}

  Result<QuantizeReport> run(const std::function<bool(uint64_t, uint64_t)>& progress) {
    const auto begin = std::chrono::steady_clock::now();
    WOK_RETURN_IF_ERROR(plan());
    WOK_RETURN_IF_ERROR(writer_.begin());
    uint64_t done = 0;
    for (size_t i = 0; i < plans_.size(); ++i) {
      const ModelTensor& tensor = file_.tensors()[i];
      if (plans_[i].kept) {
        WOK_RETURN_IF_ERROR(writer_.write(tensor.data));
      } else {
        WOK_RETURN_IF_ERROR(convert(tensor, report_.tensors[i], [&](uint64_t part) {
          return progress(done + part, report_.bytes_before);
        }));
      }
      WOK_RETURN_IF_ERROR(writer_.end_tensor());
      file_.release_pages(tensor.data);
      done += tensor.data.size();
      if (!progress(done, report_.bytes_before)) return Error{ErrorKind::kCancelled, "interrupted"};
    }
    WOK_RETURN_IF_ERROR(writer_.finish());
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(report_);
  }

 private:
  Status plan() {
    if (!file_.is_gguf()) {
      return unsupported(
          fmt::format("'{}' is a Hugging Face folder; wok quantizes GGUF files", file_.path()));
    }
    WOK_TRY(config, read_decoder_config(file_));
    const bool tied = file_.find_tensor("output.weight") == nullptr;
    for (const ModelKey& key : file_.keys()) {
      if (key.name == "general.file_type" || key.name == "general.quantization_version" ||
          key.name == "general.alignment" || key.name.starts_with("split.")) {
        continue;
      }
      writer_.key(key.name, key.type, key.bytes);
    }
    writer_.key_u32("general.file_type", mixture_.file_type);
    writer_.key_u32("general.quantization_version", kQuantizationVersion);
    double bits = 0, weights = 0;
    for (const ModelTensor& tensor : file_.tensors()) {
      if (tensor.format == nullptr) {
        return unsupported(fmt::format("'{}': tensor '{}' is of type {}, which wok does not read",
                                       file_.path(), tensor.name, gguf_type_name(tensor.type)));
      }
      const TensorPlan plan = plan_tensor(mixture_, tensor, config, tied);
      const auto rows = static_cast<uint64_t>(tensor.rows());
      const uint64_t bytes = static_cast<uint64_t>(plan.format->row_bytes(tensor.shape[0])) * rows;
      writer_.tensor(tensor.name, plan.format->gguf_type,
                     {tensor.shape, static_cast<size_t>(tensor.dims)}, bytes);
      QuantizedTensor entry{.name = std::string(tensor.name),
                            .from = tensor.format,
                            .to = plan.format,
                            .kept = plan.kept,
                            .fallback = plan.fallback,
                            .weights = tensor.shape[0] * tensor.rows(),
                            .bytes = bytes};
      bits += 8.0 * static_cast<double>(bytes);
      weights += static_cast<double>(entry.weights);
      report_.bytes_before += tensor.data.size();
      report_.bytes_after += bytes;
      report_.was_quantized = report_.was_quantized || !is_exact(*tensor.format);
      report_.tensors.push_back(std::move(entry));
      plans_.push_back(plan);
    }
    report_.bits_per_weight = bits / weights;
    return Ok{};
  }

  Status convert(const ModelTensor& tensor, QuantizedTensor& entry,
                 const std::function<bool(uint64_t)>& progress) {
    const WeightFormat& from = *tensor.format;
    const WeightFormat& to = *entry.to;
    const EncodeFn encode = find_encoder(to);
    const int64_t cols = tensor.shape[0], rows = tensor.rows();
    const int64_t each = std::max<int64_t>(1, kStretchWeights / cols);
    const int64_t from_bytes = from.row_bytes(cols), to_bytes = to.row_bytes(cols);
    struct Sums {
      double missed = 0, squares = 0;
    };
    std::vector<Sums> sums(pool_.threads());
    std::vector<std::vector<float>> row(pool_.threads()), back(pool_.threads());
    std::vector<uint8_t> out(static_cast<size_t>(std::min(each, rows) * to_bytes));
    std::atomic<int64_t> broken{-1};
    const float* importance = nullptr;
    const int64_t slab_rows = tensor.shape[1];
    if (importance_ != nullptr) {
      WOK_TRY(found, importance_->find(tensor.name, cols, rows / slab_rows));
      importance = found;
    }
    entry.weighted = importance != nullptr;
    for (int64_t first = 0; first < rows; first += each) {
      const int64_t count = std::min(each, rows - first);
      pool_.run(static_cast<int32_t>(count), [&](int32_t i, int32_t worker) {
        std::vector<float>& x = row[worker];
        std::vector<float>& y = back[worker];
        x.resize(cols);
        y.resize(cols);
        from.dequantize(tensor.data.data() + (first + i) * from_bytes, x.data(), cols);
        uint8_t* at = out.data() + i * to_bytes;
        for (const float v : x) {
          if (!std::isfinite(v)) broken.store(first + i, std::memory_order_relaxed);
        }
        if (broken.load(std::memory_order_relaxed) >= 0) return;
        const int64_t slab = (first + i) / slab_rows;
        encode(x.data(), importance == nullptr ? nullptr : importance + slab * cols, cols, at);
        to.dequantize(at, y.data(), cols);
        for (int64_t c = 0; c < cols; ++c) {
          const double miss = x[c] - y[c];
          sums[worker].missed += miss * miss;
          sums[worker].squares += double{x[c]} * x[c];
        }
      });
      if (const int64_t at = broken.load(); at >= 0) {
        return invalid(fmt::format("'{}': row {} of tensor '{}' holds values that are no numbers",
                                   file_.path(), at, tensor.name));
      }
      WOK_RETURN_IF_ERROR(writer_.write({out.data(), static_cast<size_t>(count * to_bytes)}));
      if (!progress(static_cast<uint64_t>((first + count) * from_bytes))) {
        return Error{ErrorKind::kCancelled, "interrupted"};
      }
    }
    Sums all;
    for (const Sums& s : sums) {
      all.missed += s.missed;
      all.squares += s.squares;
    }
    entry.error = all.squares > 0 ? std::sqrt(all.missed / all.squares) : 0;
    return Ok{};
  }

  const ModelFile& file_;
  const Mixture& mixture_;
  const ImportanceMatrix* importance_;
  ComputePool& pool_;
  GgufFileWriter writer_;
  std::vector<TensorPlan> plans_;
  QuantizeReport report_;
};

}  // namespace

Result<QuantizeReport> quantize_file(
    const ModelFile& file, const std::string& out, const Mixture& mixture,
    const ImportanceMatrix* importance, ComputePool& pool,
    const std::function<bool(uint64_t done, uint64_t of)>& progress) {
  std::error_code error;
  if (std::filesystem::equivalent(file.path(), out, error)) {
    return invalid(fmt::format("'{}' cannot be written while it is read: name another file", out));
  }
  return Quantizer(file, out, mixture, importance, pool).run(progress);
}

}  // namespace wok
