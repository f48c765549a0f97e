#include "quantizer/quantize_folder.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "quantizer/imatrix.h"
#include "quantizer/part_folder.h"

namespace wok {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr const char* kRecord = "wok_quantize.json";  // what was lost, by module; stays
constexpr double kCalibrationShare = 0.6;             // of a layer's time, for the bar

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Result<Json> read_json(const std::string& path) {
  std::ifstream stream(path);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return invalid(fmt::format("'{}' is no JSON object", path));
  return json;
}

Json to_json(const ModuleReport& m) {
  return {
      {"name", m.name},       {"fallback", m.fallback},         {"kept", m.kept},
      {"weights", m.weights}, {"weight_error", m.weight_error}, {"output_error", m.output_error}};
}

ModuleReport from_json(const Json& j) {
  return {.name = j.value("name", ""),
          .fallback = j.value("fallback", ""),
          .kept = j.value("kept", false),
          .weights = j.value("weights", int64_t{0}),
          .weight_error = j.value("weight_error", 0.0),
          .output_error = j.value("output_error", 0.0)};
}

// One folder that is being written.
class Output {
 public:
  Output(const FolderOutput& to, PartFolder part, int32_t layers, const FolderOptions& options)
      : to_(to), part_(std::move(part)), layers_(layers), options_(options) {}

  const FolderOutput& to() const { return to_; }
  bool has_layer(int32_t layer) const { return part_.has(shard(layer + 1)); }
  bool has_outside() const { return part_.has(shard(0)); }

  Status write_layer(int32_t layer, const LayerResult& result) {
    Json modules = Json::array();
    for (const ModuleReport& m : result.modules) modules.push_back(to_json(m));
    WOK_RETURN_IF_ERROR(
        write_text_file(part_.path(report(layer)), Json{{"modules", modules}}.dump()));
    return write_safetensors(part_.path(shard(layer + 1)), result.entries);
  }

  Status write_outside(const HfShards& shards, const FolderPlan& plan) {
    std::vector<SafetensorsEntry> entries;
    for (const std::string& name : plan.outside) {
      const HfTensor& t = shards.tensors.find(name)->second;
      entries.push_back({name, t.type_name, t.shape, {t.data.begin(), t.data.end()}});
    }
    return write_safetensors(part_.path(shard(0)), entries);
  }

  // The configuration, the index, the source's other files; then the folder has its name.
  Status finish(const std::string& source, const FolderPlan& plan, FolderReport::Method& out) {
    for (int32_t i = 0; i < layers_; ++i) {
      WOK_TRY(json, read_json(part_.path(report(i))));
      for (const Json& m : json.at("modules")) out.modules.push_back(from_json(m));
    }
    out.modules.insert(out.modules.end(), plan.kept.begin(), plan.kept.end());
    WOK_TRY(config, read_json(source + "/config.json"));
    config["quantization_config"] = settings();
    WOK_RETURN_IF_ERROR(write_text_file(part_.path("config.json"), config.dump(2) + "\n"));
    WOK_RETURN_IF_ERROR(write_index());
    WOK_RETURN_IF_ERROR(copy_others(source));
    Json modules = Json::array();
    for (const ModuleReport& m : out.modules) modules.push_back(to_json(m));
    const Json record = {{"quantization_config", settings()}, {"modules", modules}};
    WOK_RETURN_IF_ERROR(write_text_file(part_.path(kRecord), record.dump(1) + "\n"));
    for (int32_t i = 0; i < layers_; ++i) fs::remove(part_.path(report(i)));
    WOK_RETURN_IF_ERROR(part_.finish());
    for (const fs::directory_entry& entry : fs::directory_iterator(to_.path)) {
      if (entry.is_regular_file()) out.bytes += entry.file_size();
    }
    return Ok{};
  }

 private:
  std::string shard(int32_t i) const {
    return fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, layers_ + 1);
  }
  static std::string report(int32_t layer) { return fmt::format("report-{:05}.json", layer); }

  Json settings() const {
    if (to_.method == FolderMethod::kAwq) {
      return {{"quant_method", "awq"},
              {"bits", options_.bits},
              {"group_size", options_.group},
              {"zero_point", true},
              {"version", "gemm"},
              {"modules_to_not_convert", {"lm_head"}}};
    }
    return {{"quant_method", "gptq"},
            {"bits", options_.bits},
            {"group_size", options_.group},
            {"desc_act", options_.act_order && to_.method == FolderMethod::kGptq},
            {"sym", options_.symmetric},
            {"lm_head", false},
            {"true_sequential", false},
            {"static_groups", true},
            {"damp_percent", options_.damping},
            {"checkpoint_format", "gptq"},
            {"meta", {{"quantizer", {"wok"}}}}};
  }

  Status write_index() {
    Json map = Json::object();
    uint64_t bytes = 0;
    for (int32_t i = 0; i <= layers_; ++i) {
      WOK_TRY(file, MappedFile::open(part_.path(shard(i))));
      HfTensors tensors;
      WOK_RETURN_IF_ERROR(parse_safetensors(file.bytes(), shard(i), tensors));
      for (const auto& [name, tensor] : tensors) {
        map[name] = shard(i);
        bytes += tensor.data.size();
      }
    }
    const Json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
    return write_text_file(part_.path("model.safetensors.index.json"), index.dump(1) + "\n");
  }

  // Tokenizer, templates, licences: all but weights and what describes them.
  Status copy_others(const std::string& source) {
    constexpr uintmax_t kMostBytes = uintmax_t{256} << 20;
    for (const fs::directory_entry& entry : fs::directory_iterator(source)) {
      const std::string name = entry.path().filename().string();
      const std::string type = entry.path().extension().string();
      const bool weights = type == ".safetensors" || type == ".bin" || type == ".gguf" ||
                           type == ".pt" || type == ".pth" || name.ends_with(".index.json");
      if (!entry.is_regular_file() || weights || name == "config.json" || name == kRecord ||
          entry.file_size() > kMostBytes) {
        continue;
      }
      std::error_code error;
      fs::copy_file(entry.path(), part_.path(name), fs::copy_options::overwrite_existing, error);
      if (error) {
        return io_error(fmt::format("cannot write '{}': {}", part_.path(name), error.message()));
      }
    }
    return Ok{};
  }

  FolderOutput to_;
  PartFolder part_;
  int32_t layers_;
  FolderOptions options_;
};

class FolderQuantizer {
 public:
  FolderQuantizer(const FolderJob& job, ComputePool& pool,
                  const std::function<bool(double)>& progress)
      : job_(job), pool_(pool), progress_(progress), layers_(job.model->config().layers) {}

  Result<FolderReport> run() {
    const auto begin = Clock::now();
    WOK_RETURN_IF_ERROR(prepare());
    WOK_TRY(calibration,
            Calibration::create(*job_.model, job_.tokens, job_.chunk_tokens, job_.bos_id, pool_));
    report_.calibration_tokens = int64_t{calibration.chunks()} * job_.chunk_tokens;
    ImportanceMatrix importance;
    for (int32_t i = 0; i < layers_; ++i) {
      WOK_RETURN_IF_ERROR(layer(i, calibration, importance));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Output& output = outputs_[i];
      if (!output.has_outside()) WOK_RETURN_IF_ERROR(output.write_outside(shards_, plan_));
      WOK_RETURN_IF_ERROR(output.finish(job_.folder, plan_, report_.methods[i]));
    }
    if (!job_.imatrix.empty()) {
      WOK_RETURN_IF_ERROR(
          importance.write(job_.imatrix, job_.text, calibration.chunks(), job_.chunk_tokens));
    }
    report_.seconds = seconds_since(begin);
    return std::move(report_);
  }

 private:
  Status prepare() {
    WOK_TRY(config_json, read_json(job_.folder + "/config.json"));
    if (config_json.contains("quantization_config")) {
      return unsupported(
          fmt::format("'{}' is quantized already; start from the model that it was "
                      "made from",
                      job_.folder));
    }
    WOK_TRY(config, read_hf_config(config_json, job_.folder));
    config_ = std::move(config);
    WOK_TRY(shards, open_hf_shards(job_.folder));
    shards_ = std::move(shards);
    WOK_TRY(plan, plan_folder(shards_, config_, layers_, job_.folder));
    plan_ = std::move(plan);
    options_ = job_.options;
    WOK_TRY(group, common_group(plan_, options_.group, job_.folder));
    options_.group = report_.group = group;
    for (const FolderOutput& to : job_.outputs) {
      WOK_RETURN_IF_ERROR(check(to));
      WOK_TRY(part, PartFolder::open(to.path, identity(to)));
      FolderReport::Method method{.method = to.method, .path = to.path};
      outputs_.emplace_back(to, std::move(part), layers_, options_);
      for (int32_t i = 0; i < layers_; ++i) method.resumed_layers += outputs_.back().has_layer(i);
      report_.methods.push_back(std::move(method));
    }
    return Ok{};
  }

  Status check(const FolderOutput& to) const {
    if (to.method != FolderMethod::kAwq) return Ok{};
    if (options_.bits != 4) {
      return invalid(
          fmt::format("AWQ's format has 4 bits, not {}; GPTQ's has 2, 3, 4 and 8", options_.bits));
    }
    if (options_.group < 0) return invalid("AWQ's readers take no whole rows as groups");
    return Ok{};
  }

  // What the bytes of an output depend on.
  std::string identity(const FolderOutput& to) const {
    XXH3_state_t* state = XXH3_createState();
    XXH3_64bits_reset(state);
    for (const auto& file : shards_.files) {
      // Headers and some of the data: reading all of a large model would take as long as the work.
      constexpr size_t kSample = size_t{1} << 20;
      const std::span<const uint8_t> bytes = file->bytes();
      const size_t n = std::min(kSample, bytes.size());
      XXH3_64bits_update(state, bytes.data(), n);
      XXH3_64bits_update(state, bytes.data() + bytes.size() - n, n);
    }
    const uint64_t source = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    const uint64_t text =
        XXH3_64bits(job_.tokens.data(), job_.tokens.size() * sizeof(job_.tokens[0]));
    uint64_t bytes = 0;
    for (const auto& file : shards_.files) bytes += file->bytes().size();
    return Json{{"version", 1},
                {"method", method_name(to.method)},
                {"bits", options_.bits},
                {"group", options_.group},
                {"symmetric", options_.symmetric},
                {"act_order", options_.act_order},
                {"damping", options_.damping},
                {"source", source},
                {"source_bytes", bytes},
                {"text", text},
                {"chunk", job_.chunk_tokens},
                {"kernels", job_.model->kernels().name}}
        .dump();
  }

  Status layer(int32_t i, Calibration& calibration, ImportanceMatrix& importance) {
    const bool all_there =
        std::all_of(outputs_.begin(), outputs_.end(), [&](Output& o) { return o.has_layer(i); });
    const bool wanted = !all_there || !job_.imatrix.empty();
    const auto begin = Clock::now();
    LayerGrams grams;
    const auto share = [&](double part) { return (i + part) / layers_; };
    WOK_RETURN_IF_ERROR(calibration.next_layer(wanted ? &grams : nullptr, [&](int32_t done) {
      return progress_(share(kCalibrationShare * done / calibration.chunks()));
    }));
    report_.calibration_s += seconds_since(begin);
    if (!job_.imatrix.empty()) importance.add_layer(i, grams);
    for (Output& output : outputs_) {
      if (output.has_layer(i)) continue;
      const LayerResult result =
          quantize_layer(shards_, plan_, config_, job_.model->config(), i, output.to().method,
                         options_, grams, job_.model->kernels(), pool_);
      WOK_RETURN_IF_ERROR(output.write_layer(i, result));
    }
    return progress_(share(1)) ? Status(Ok{}) : Status(Error{ErrorKind::kCancelled, "interrupted"});
  }

  const FolderJob& job_;
  ComputePool& pool_;
  const std::function<bool(double)>& progress_;
  int32_t layers_;
  HfConfig config_;
  HfShards shards_;
  FolderPlan plan_;
  FolderOptions options_;
  std::vector<Output> outputs_;
  FolderReport report_;
};

}  // namespace

Result<FolderReport> quantize_folder(const FolderJob& job, ComputePool& pool,
                                     const std::function<bool(double share)>& progress) {
  return FolderQuantizer(job, pool, progress).run();
}

}  // namespace wok
