#include "formats/hf_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace wok {
namespace {

using Json = nlohmann::json;

class RopeReader {
 public:
  RopeReader(const Json& config, const std::string& folder, HfConfig& out)
      : c_(config), folder_(folder), out_(out) {}

  Status read() {
    // Newer configurations gather these in rope_parameters, older ones in rope_scaling.
    s_ = has("rope_parameters") ? c_.at("rope_parameters")
         : has("rope_scaling")  ? c_.at("rope_scaling")
                                : Json::object();
    base_ = c_.value("rope_theta", 10000.0);
    if (s_.contains("full_attention")) {  // one a kind of layer
      const Json local = s_.value("sliding_attention", Json::object());
      if (local.value("rope_theta", 10000.0) != 10000.0 ||
          local.value("rope_type", "default") != "default") {
        return refuse("rope_parameters", local, "a base of 10000 for local layers");
      }
      s_ = s_.at("full_attention");
    }
    base_ = s_.value("rope_theta", base_);
    if (c_.value("rope_local_base_freq", 10000.0) != 10000.0) {
      return refuse("rope_local_base_freq", c_.at("rope_local_base_freq"), 10000);
    }
    number("rope.freq_base", base_);
    const int64_t heads = std::max<int64_t>(1, c_.value("num_attention_heads", int64_t{1}));
    dims_ = has("head_dim") ? c_.at("head_dim").get<int64_t>()
                            : c_.value("hidden_size", int64_t{0}) / heads;
    const double part = s_.value("partial_rotary_factor", c_.value("partial_rotary_factor", 1.0));
    if (!(part > 0 && part <= 1) || dims_ < 2 || dims_ > 4096) {
      return invalid(
          fmt::format("'{}/config.json': {} of heads of {} rotate", folder_, part, dims_));
    }
    if (part != 1) {
      dims_ = static_cast<int64_t>(static_cast<double>(dims_) * part);
      whole("rope.dimension_count", dims_);
    }
    const std::string type = s_.value("rope_type", s_.value("type", "default"));
    if (type == "default") return Ok{};
    // Early Phi-3 configurations call their scaling by other names.
    if (type == "longrope" || type == "su" || (type == "yarn" && out_.architecture == "phi3")) {
      return longrope();
    }
    if (type == "linear") {
      scaling(type);
      return Ok{};
    }
    if (type == "yarn") return yarn();
    if (type == "llama3") return llama3();
    if (type == "dynamic") return dynamic();
    return unsupported(
        fmt::format("'{}/config.json': RoPE scaling '{}' is not supported; wok has "
                    "default, linear, dynamic, yarn, llama3 and longrope",
                    folder_, type));
  }

 private:
  bool has(const char* name) const { return c_.contains(name) && !c_.at(name).is_null(); }
  std::string key(const std::string& name) const { return out_.architecture + "." + name; }
  void whole(const char* name, int64_t value) { out_.keys[key(name)] = value; }
  void number(const char* name, double value) { out_.keys[key(name)] = value; }
  void scaling(const std::string& type) {
    out_.keys[key("rope.scaling.type")] = type;
    number("rope.scaling.factor", s_.value("factor", 1.0));
  }

  Error refuse(const std::string& name, const Json& value, const Json& ours) const {
    return unsupported(fmt::format("'{}/config.json': {} is {}; wok runs {} with {}", folder_, name,
                                   value.dump(), out_.architecture, ours.dump()));
  }

  int64_t trained_tokens() const {
    if (s_.contains("original_max_position_embeddings")) {
      return s_.at("original_max_position_embeddings").get<int64_t>();
    }
    return c_.value("original_max_position_embeddings",
                    c_.value("max_position_embeddings", int64_t{0}));
  }

  Status yarn() {
    scaling("yarn");
    for (const auto& [name, ours] : {std::pair{"beta_fast", 32.0}, {"beta_slow", 1.0}}) {
      if (s_.value(name, ours) != ours) return refuse(name, s_.at(name), ours);
    }
    const bool whole_pairs = out_.architecture != "gpt-oss";
    if (s_.value("truncate", true) != whole_pairs) {
      return refuse("truncate", s_.value("truncate", true), whole_pairs);
    }
    for (const char* other : {"mscale", "mscale_all_dim", "attention_factor"}) {
      if (s_.contains(other) && !s_.at(other).is_null()) {
        return refuse(other, s_.at(other), nullptr);
      }
    }
    whole("rope.scaling.original_context_length", trained_tokens());
    return Ok{};
  }

  // The base grows with the sequence once that is longer than the trained length (arXiv 2309.00071,
  // appendix B.1), so that the same text has other keys in a longer one and no page could be kept.
  // Within that length there is no scaling, and wok goes no further.
  Status dynamic() {
    const int64_t context = c_.value("max_position_embeddings", int64_t{0});
    whole("context_length", std::min(context, trained_tokens()));
    return Ok{};
  }

  // LongRoPE (arXiv 2402.13753): a divisor of each frequency, for short and for long contexts.
  Status longrope() {
    const int64_t context = c_.value("max_position_embeddings", int64_t{0});
    const int64_t trained = trained_tokens();
    for (const auto& [from, to] :
         {std::pair{"short_factor", "rope_factors_short"}, {"long_factor", "rope_factors_long"}}) {
      if (!s_.contains(from)) {
        return invalid(fmt::format("'{}/config.json': longrope has no '{}'", folder_, from));
      }
      out_.rope_vectors[to] = s_.at(from).get<std::vector<float>>();
    }
    const bool given = s_.contains("attention_factor") && !s_.at("attention_factor").is_null();
    if (trained < (given ? 1 : 2) || context < 1) {
      return invalid(fmt::format("'{}/config.json': longrope of a context of {} trained with {}",
                                 folder_, context, trained));
    }
    out_.keys[key("rope.scaling.type")] = std::string("longrope");
    whole("rope.scaling.original_context_length", trained);
    const double ratio = s_.contains("factor") && !s_.at("factor").is_null()
                             ? s_.at("factor").get<double>()
                             : static_cast<double>(context) / static_cast<double>(trained);
    const double usual =
        ratio <= 1 ? 1 : std::sqrt(1 + std::log(ratio) / std::log(static_cast<double>(trained)));
    number("rope.scaling.attn_factor", given ? s_.at("attention_factor").get<double>() : usual);
    return Ok{};
  }

  // Llama 3.1's stretch: slow pairs are slowed down by the factor, fast ones left alone, between
  // them a blend by wavelength (arXiv 2407.21783, and the release's reference code).
  Status llama3() {
    const double factor = s_.value("factor", 1.0);
    const double low = s_.value("low_freq_factor", 1.0);
    const double high = s_.value("high_freq_factor", 4.0);
    const double original = s_.value("original_max_position_embeddings", 8192.0);
    if (!(factor >= 1 && high > low && low > 0)) {
      return invalid(fmt::format("'{}/config.json': rope_scaling is {}", folder_, s_.dump()));
    }
    std::vector<float>& divisors = out_.rope_vectors["rope_freqs"];
    for (int64_t pair = 0; pair < dims_ / 2; ++pair) {
      const double wavelength =
          2 * M_PI * std::pow(base_, 2 * static_cast<double>(pair) / static_cast<double>(dims_));
      const double turns = original / wavelength;
      const double smooth = (turns - low) / (high - low);
      const double divisor = turns > high  ? 1
                             : turns < low ? factor
                                           : 1 / ((1 - smooth) / factor + smooth);
      divisors.push_back(static_cast<float>(divisor));
    }
    return Ok{};
  }

  const Json& c_;
  const std::string& folder_;
  HfConfig& out_;
  Json s_;  // what the scaling's fields are in
  double base_ = 10000;
  int64_t dims_ = 0;  // that rotate
};

}  // namespace

Status read_hf_rope(const Json& config, const std::string& folder, HfConfig& out) {
  return RopeReader(config, folder, out).read();
}

}  // namespace wok
