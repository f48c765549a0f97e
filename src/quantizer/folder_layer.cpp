#include "quantizer/folder_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/half.h"
#include "formats/hf_names.h"
#include "quantizer/awq.h"
#include "quantizer/gptq.h"
#include "quantizer/hf_pack.h"

namespace wok {
namespace {

// Fewer tokens than this part of the inputs' width say too little about them.
constexpr int64_t kLeastRowsPart = 8;

constexpr const char* kLinear[] = {
    "attn_q",         "attn_k",       "attn_v",        "attn_output", "ffn_gate",
    "ffn_up",         "ffn_down",     "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps",
    "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp"};

// "blk.3.attn_q" in two.
std::pair<int32_t, std::string> split_place(const std::string& name) {
  int32_t layer = -1;
  if (!name.starts_with("blk.")) return {-1, name};
  const char* begin = name.data() + 4;
  const auto [end, error] = std::from_chars(begin, name.data() + name.size(), layer);
  if (error != std::errc() || *end != '.') return {-1, name};
  return {layer, std::string(end + 1, name.data() + name.size())};
}

std::vector<float> read_floats(const HfTensor& tensor, ComputePool& pool) {
  std::vector<float> out(static_cast<size_t>(tensor.elements()));
  const int64_t rows = tensor.dim(0), cols = tensor.elements() / std::max<int64_t>(rows, 1);
  pool.run(static_cast<int32_t>(rows), [&](int32_t r, int32_t) {
    for (int64_t i = r * cols; i < (r + 1) * cols; ++i) out[i] = tensor.float_at(i);
  });
  return out;
}

// What a tensor of this type holds when `x` is written to it.
float rounded_as(HfType type, float x) {
  if (type == HfType::kF16) return half_to_float(float_to_half(x));
  if (type == HfType::kBF16) return bf16_to_float(float_to_bf16(x));
  return x;
}

SafetensorsEntry copy_of(const std::string& name, const HfTensor& tensor) {
  return {name, tensor.type_name, tensor.shape, {tensor.data.begin(), tensor.data.end()}};
}

SafetensorsEntry floats_as(const std::string& name, const HfTensor& like,
                           const std::vector<float>& values) {
  SafetensorsEntry out{name, like.type_name, like.shape, std::vector<uint8_t>(like.data.size())};
  for (size_t i = 0; i < values.size(); ++i) {
    if (like.type == HfType::kF32) {
      std::memcpy(out.data.data() + 4 * i, &values[i], 4);
    } else {
      const uint16_t bits =
          like.type == HfType::kF16 ? float_to_half(values[i]) : float_to_bf16(values[i]);
      std::memcpy(out.data.data() + 2 * i, &bits, 2);
    }
  }
  return out;
}

class LayerQuantizer {
 public:
  struct Module {
    const LinearModule* from;
    int32_t rows, cols;
    std::vector<float> w;
    Gram* gram;
    std::vector<float> by_column;  // AWQ's factors, or empty
  };

  LayerQuantizer(const HfShards& shards, const FolderPlan& plan, const HfConfig& config,
                 const DecoderConfig& decoder, int32_t layer, FolderMethod method,
                 const FolderOptions& options, LayerGrams& grams, const KernelTable& kernels,
                 ComputePool& pool)
      : shards_(shards),
        plan_(plan),
        config_(config),
        decoder_(decoder),
        layer_(layer),
        method_(method),
        o_(options),
        grams_(grams),
        product_(kernels, pool),
        pool_(pool) {}

  LayerResult run() {
    for (const LinearModule& m : plan_.modules[layer_]) {
      modules_.push_back({&m,
                          static_cast<int32_t>(m.tensor->dim(0)),
                          static_cast<int32_t>(m.tensor->dim(1)),
                          read_floats(*m.tensor, pool_),
                          gram_of(m),
                          {}});
    }
    if (method_ == FolderMethod::kAwq) fold_scales();
    for (Module& m : modules_) quantize(m);
    for (const std::string& name : plan_.tensors[layer_]) {
      if (done_.contains(name)) continue;
      const HfTensor& tensor = shards_.tensors.find(name)->second;
      const auto changed = changed_.find(name);
      out_.entries.push_back(changed == changed_.end() ? copy_of(name, tensor)
                                                       : floats_as(name, tensor, changed->second));
    }
    return std::move(out_);
  }

 private:
  Gram* gram_of(const LinearModule& m) {
    const auto of = [&](std::vector<Gram>& grams) -> Gram* {
      return m.expert < static_cast<int64_t>(grams.size()) ? &grams[m.expert] : &none_;
    };
    if (m.place.starts_with("attn_")) {
      return m.place == "attn_output" ? &grams_.attention_out : &grams_.attention;
    }
    if (m.place.ends_with("_exps")) {
      return of(m.place == "ffn_down_exps" ? grams_.expert_down : grams_.experts);
    }
    return m.place.starts_with("ffn_down") ? &grams_.down : &grams_.feed_forward;
  }

  GroupedOptions grouped(int32_t cols) const {
    return {o_.bits, o_.group < 0 ? cols : o_.group, o_.symmetric && method_ != FolderMethod::kAwq};
  }

  std::vector<Module*> find(std::initializer_list<const char*> places, int64_t expert = -1) {
    std::vector<Module*> out;
    for (const char* place : places) {
      for (Module& m : modules_) {
        if (m.from->place == place && m.from->expert == expert) out.push_back(&m);
      }
    }
    return out;
  }

  // AWQ's factors go where they cancel: into a norm, or into the rows that make the inputs.
  void fold_scales() {
    if (decoder_.pre_norms) {
      fold_into_norm("attn_norm", find({"attn_q", "attn_k", "attn_v"}));
      // The router reads the experts' norm, too.
      if (decoder_.experts.count == 0) fold_into_norm("ffn_norm", find({"ffn_gate", "ffn_up"}));
    }
    // Several query heads read one value head, except where there are as many of both.
    if (!decoder_.qkv_bias) fold_into_rows(find({"attn_v"}), find({"attn_output"}));
    fold_into_rows(find({"ffn_up"}), find({"ffn_down"}));
    fold_into_rows(find({"ffn_up_shexp"}), find({"ffn_down_shexp"}));
    for (int64_t e = 0; e < decoder_.experts.count; ++e) {
      fold_into_rows(find({"ffn_up_exps"}, e), find({"ffn_down_exps"}, e));
    }
  }

  AwqScales search(const std::vector<Module*>& readers) {
    std::vector<AwqMatrix> matrices;
    matrices.reserve(readers.size());
    for (Module* m : readers) matrices.push_back({&m->w, m->rows});
    return find_awq_scales(matrices, *readers[0]->gram, grouped(readers[0]->cols), product_, pool_);
  }

  void multiply_columns(Module& m, const std::vector<float>& by) {
    pool_.run(m.rows, [&](int32_t r, int32_t) {
      float* row = m.w.data() + static_cast<size_t>(r) * m.cols;
      for (int32_t c = 0; c < m.cols; ++c) row[c] *= by[c];
    });
    m.by_column = by;
  }

  void fold_into_norm(const char* place, const std::vector<Module*>& readers) {
    if (readers.empty() || readers[0]->gram->rows() == 0) return;
    const std::string wanted = fmt::format("blk.{}.{}", layer_, place);
    for (const std::string& name : plan_.tensors[layer_]) {
      if (!name.ends_with(".weight")) continue;
      const auto places = hf_places(name.substr(0, name.size() - 7), config_);
      if (places.size() != 1 || places[0].name != wanted) continue;
      const HfTensor& norm = shards_.tensors.find(name)->second;
      if (!norm.is_float() || norm.elements() != readers[0]->cols) return;
      AwqScales found = search(readers);
      // What the file can hold decides: the matrices get just what the norm lost.
      const float plus = config_.norms_plus_one ? 1.0f : 0.0f;
      std::vector<float> values(found.by_column.size());
      for (size_t c = 0; c < values.size(); ++c) {
        const float before = norm.float_at(static_cast<int64_t>(c)) + plus;
        values[c] = rounded_as(norm.type, before / found.by_column[c] - plus);
        const float after = values[c] + plus;
        found.by_column[c] = before / after;
        if (!(found.by_column[c] > 0) || !std::isfinite(found.by_column[c])) {
          values[c] = before - plus;
          found.by_column[c] = 1;
        }
      }
      for (Module* m : readers) multiply_columns(*m, found.by_column);
      changed_[name] = std::move(values);
      return;
    }
  }

  void fold_into_rows(const std::vector<Module*>& makers, const std::vector<Module*>& readers) {
    if (makers.size() != 1 || readers.size() != 1 || makers[0]->rows != readers[0]->cols ||
        readers[0]->gram->rows() == 0) {
      return;
    }
    const AwqScales found = search(readers);
    multiply_columns(*readers[0], found.by_column);
    Module& maker = *makers[0];
    pool_.run(maker.rows, [&](int32_t r, int32_t) {
      float* row = maker.w.data() + static_cast<size_t>(r) * maker.cols;
      for (int32_t c = 0; c < maker.cols; ++c) row[c] /= found.by_column[r];
    });
  }

  GroupedMatrix round(Module& m, ModuleReport& report) {
    const GroupedOptions options = grouped(m.cols);
    if (method_ == FolderMethod::kGptq) {
      GptqFactor& factor = factors_[m.gram];
      if (factor.cols == 0) {
        factor =
            make_gptq_factor(*m.gram, o_.damping, std::max<int64_t>(1, m.cols / kLeastRowsPart));
        factor.cols = m.cols;
      }
      if (factor.problem.empty()) {
        return gptq(m.w.data(), m.rows, factor, options, o_.act_order, pool_);
      }
      report.fallback = factor.problem;
    }
    if (method_ == FolderMethod::kAwq) {
      if (m.gram->rows() == 0) {
        report.fallback = "0 tokens of the calibration text reached it";
      } else if (m.from->place != "attn_q" && m.from->place != "attn_k") {
        // Clipping queries and keys does harm (the paper's code leaves them out).
        return awq_round(m.w, m.rows, *m.gram, m.by_column, options, pool_);
      }
    }
    return round_to_nearest(m.w.data(), m.rows, m.cols, nullptr, options, pool_);
  }

  void quantize(Module& m) {
    ModuleReport report{.name = m.from->name, .weights = int64_t{m.rows} * m.cols};
    const GroupedMatrix matrix = round(m, report);
    std::vector<float> d = lost(m.w.data(), matrix, pool_);
    if (!m.by_column.empty()) {  // as the inputs were
      pool_.run(m.rows, [&](int32_t r, int32_t) {
        const size_t at = static_cast<size_t>(r) * m.cols;
        for (int32_t c = 0; c < m.cols; ++c) {
          d[at + c] /= m.by_column[c];
          m.w[at + c] /= m.by_column[c];
        }
      });
    }
    double missed = 0, squares = 0;
    for (size_t i = 0; i < d.size(); ++i) {
      missed += double{d[i]} * d[i];
      squares += double{m.w[i]} * m.w[i];
    }
    report.weight_error = squares > 0 ? std::sqrt(missed / squares) : 0;
    if (m.gram->rows() > 0) {
      const double all = output_error(m.w, m.rows, *m.gram, product_);
      report.output_error =
          all > 0 ? std::sqrt(output_error(d, m.rows, *m.gram, product_) / all) : 0;
    }
    auto entries = method_ == FolderMethod::kAwq ? pack_awq(m.from->name, matrix)
                                                 : pack_gptq(m.from->name, matrix);
    for (SafetensorsEntry& e : entries) out_.entries.push_back(std::move(e));
    done_.insert(m.from->name + ".weight");
    out_.modules.push_back(std::move(report));
    m.w = {};
  }

  const HfShards& shards_;
  const FolderPlan& plan_;
  const HfConfig& config_;
  const DecoderConfig& decoder_;
  int32_t layer_;
  FolderMethod method_;
  const FolderOptions& o_;
  LayerGrams& grams_;
  Gram none_;
  FloatProduct product_;
  ComputePool& pool_;
  std::vector<Module> modules_;
  std::map<const Gram*, GptqFactor> factors_;
  std::map<std::string, std::vector<float>> changed_;
  std::set<std::string> done_;
  LayerResult out_;
};

}  // namespace

const char* method_name(FolderMethod method) {
  return method == FolderMethod::kRound ? "rtn" : method == FolderMethod::kGptq ? "gptq" : "awq";
}

Result<FolderPlan> plan_folder(const HfShards& shards, const HfConfig& config, int32_t layers,
                               const std::string& folder) {
  FolderPlan plan;
  plan.tensors.resize(layers);
  plan.modules.resize(layers);
  for (const auto& [name, tensor] : shards.tensors) {
    const size_t dot = name.rfind('.');
    const std::string module = dot == std::string::npos ? name : name.substr(0, dot);
    const std::vector<HfPlace> places = hf_places(module, config);
    const auto [layer, place] =
        places.empty() ? std::pair(-1, std::string()) : split_place(places[0].name);
    if (layer < 0 || layer >= layers) {
      plan.outside.push_back(name);
      continue;
    }
    plan.tensors[layer].push_back(name);
    if (!name.ends_with(".weight")) continue;
    if (std::find(std::begin(kLinear), std::end(kLinear), place) == std::end(kLinear)) continue;
    if (!tensor.is_float()) {
      return unsupported(
          fmt::format("'{}' is quantized already ('{}' is {}); start from the model "
                      "that it was made from",
                      folder, name, tensor.type_name));
    }
    if (places.size() != 1 || tensor.shape.size() != 2 || tensor.dim(0) % 32 != 0 ||
        tensor.dim(1) % 32 != 0) {
      plan.kept.push_back({.name = module,
                           .fallback = "its shape is one that the format does not have",
                           .kept = true,
                           .weights = tensor.elements()});
      continue;
    }
    plan.modules[layer].push_back({module, place, places[0].expert, &tensor});
  }
  return plan;
}

Result<int32_t> common_group(const FolderPlan& plan, int32_t asked, const std::string& folder) {
  if (asked < 0) return asked;
  for (const int32_t group : {asked, 64, 32}) {
    if (group > asked) continue;
    bool fits = true;
    for (const auto& layer : plan.modules) {
      for (const LinearModule& m : layer) fits = fits && m.tensor->dim(1) % group == 0;
    }
    if (fits) return group;
  }
  return invalid(
      fmt::format("'{}': its rows are no multiples of groups of {}, 64 or 32; --group -1 "
                  "takes whole rows",
                  folder, asked));
}

LayerResult quantize_layer(const HfShards& shards, const FolderPlan& plan, const HfConfig& config,
                           const DecoderConfig& decoder, int32_t layer, FolderMethod method,
                           const FolderOptions& options, LayerGrams& grams,
                           const KernelTable& kernels, ComputePool& pool) {
  return LayerQuantizer(shards, plan, config, decoder, layer, method, options, grams, kernels, pool)
      .run();
}

}  // namespace wok
