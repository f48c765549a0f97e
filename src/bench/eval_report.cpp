#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/eval.h"

namespace wok::bench {
namespace {

std::string with_width(double value, double half_width, const char* form) {
  std::string text = fmt::format(fmt::runtime(form), value);
  if (std::isnan(half_width)) return text;
  return text + " ± " + fmt::format(fmt::runtime(form), half_width);
}

// NaN, "not known", has no form in JSON.
nlohmann::json mean_json(const Mean& m) {
  nlohmann::json out = {{"value", nullptr}, {"ci95", nullptr}};
  if (!std::isnan(m.value)) out["value"] = m.value;
  if (!std::isnan(m.half_width)) out["ci95"] = m.half_width;
  return out;
}

}  // namespace

std::string eval_table(const EvalReport& r) {
  std::string out;
  const auto line = [&](const char* what, const std::string& value) {
    out += fmt::format("{:<24} {}\n", what, value);
  };
  line("perplexity", with_width(r.perplexity.value, r.perplexity.half_width, "{:.4f}"));
  if (r.divergence) {
    const Divergence& d = *r.divergence;
    line("of the reference", fmt::format("{:.4f}", d.reference_perplexity));
    line("ratio", with_width(d.perplexity_ratio.value, d.perplexity_ratio.half_width, "{:.5f}"));
    line("KL divergence", with_width(d.kl.value, d.kl.half_width, "{:.6f}"));
    line("  median, 99 %, 99.9 %", fmt::format("{:.6f}, {:.6f}, {:.6f}; greatest {:.4f}",
                                               d.kl_median, d.kl_99, d.kl_999, d.kl_max));
    line("same most probable",
         with_width(100 * d.same_top.value, 100 * d.same_top.half_width, "{:.3f}") + " %");
    if (std::isnan(d.flipped.value)) {
      line("right answers lost", "the reference had none");
    } else {
      line("right answers lost",
           with_width(100 * d.flipped.value, 100 * d.flipped.half_width, "{:.3f}") + " %");
    }
    line(
        "right token's p",
        fmt::format("{}{} points; root mean square {:.3f}", d.right_delta.value < 0 ? "" : "+",
                    with_width(100 * d.right_delta.value, 100 * d.right_delta.half_width, "{:.3f}"),
                    100 * d.right_delta_rms));
  }
  line("scored",
       fmt::format("{} tokens, {} chunks of {}", r.scored_tokens, r.chunks, r.chunk_tokens));
  line("speed", fmt::format("{:.0f} tokens/s", r.tokens_per_s));
  return out;
}

std::string eval_json(const EvalReport& r, const std::string& model, const std::string& against,
                      const std::string& text) {
  nlohmann::json out = {{"model", model},
                        {"text", text},
                        {"chunks", r.chunks},
                        {"chunk_tokens", r.chunk_tokens},
                        {"scored_tokens", r.scored_tokens},
                        {"perplexity", mean_json(r.perplexity)},
                        {"log_loss", mean_json(r.log_loss)},
                        {"tokens_per_s", r.tokens_per_s}};
  if (r.divergence) {
    const Divergence& d = *r.divergence;
    out["against"] = {{"model", against},
                      {"perplexity", d.reference_perplexity},
                      {"perplexity_ratio", mean_json(d.perplexity_ratio)},
                      {"kl", mean_json(d.kl)},
                      {"kl_median", d.kl_median},
                      {"kl_p99", d.kl_99},
                      {"kl_p999", d.kl_999},
                      {"kl_max", d.kl_max},
                      {"same_top", mean_json(d.same_top)},
                      {"right_answers_lost", mean_json(d.flipped)},
                      {"right_delta", mean_json(d.right_delta)},
                      {"right_delta_rms", d.right_delta_rms}};
  }
  return out.dump(2) + "\n";
}

}  // namespace wok::bench
