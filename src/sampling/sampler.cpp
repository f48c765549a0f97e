#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wok {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

// SplitMix64 (Steele, Lea & Flood 2014) over a counter: no state to carry between steps.
double uniform(uint64_t seed, uint64_t position) {
  uint64_t z = seed + (position + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-53;
}

Sampler::Sampler(const KernelTable& kernels, int32_t vocab) : kernels_(&kernels) {
  probabilities_.resize(vocab);
  counts_.resize(vocab);
  candidates_.reserve(vocab);
  raw_.reserve(vocab);
}

// Logprobs are the model's own: taken before penalties, bias and temperature change anything.
void Sampler::report(const SamplingInput& input, SampledToken& out) {
  const std::span<const float> logits = input.logits;
  const auto n = static_cast<int32_t>(logits.size());
  const float top = kernels_->max(logits.data(), n);
  const double sum = kernels_->exp_sum(logits.data(), top, 1.0f, n, probabilities_.data());
  const auto log_sum = static_cast<float>(std::log(sum)) + top;
  const int32_t wanted = std::min(input.params->top_logprobs, n);
  // Insertion into a short sorted list: one compare per token once it is full.
  int32_t count = 0;
  for (int32_t t = 0; t < n && wanted > 0; ++t) {
    const float value = logits[t];
    if (count == wanted && !(value > out.top[count - 1].logprob)) continue;
    int32_t at = count < wanted ? count++ : count - 1;
    while (at > 0 && out.top[at - 1].logprob < value) {
      out.top[at] = out.top[at - 1];
      --at;
    }
    out.top[at] = {t, value};
  }
  for (int32_t i = 0; i < count; ++i) out.top[i].logprob -= log_sum;
  out.top_count = count;
  out.logprob = log_sum;  // the caller subtracts it from the chosen token's logit
}

void Sampler::penalize(const SamplingInput& input) {
  const SamplingParams& p = *input.params;
  std::span<float> logits = input.logits;
  const auto vocab = static_cast<int32_t>(logits.size());
  const bool output_penalties = p.presence_penalty != 0 || p.frequency_penalty != 0;
  if (p.repetition_penalty != 1 || output_penalties) {
    const auto prompt = static_cast<size_t>(input.prompt_tokens);
    if (p.repetition_penalty != 1) {
      for (const int32_t t : input.tokens) {
        if (counts_[t]++ == 0) {
          logits[t] =
              logits[t] > 0 ? logits[t] / p.repetition_penalty : logits[t] * p.repetition_penalty;
        }
      }
      for (const int32_t t : input.tokens) counts_[t] = 0;
    }
    if (output_penalties) {
      const auto output = input.tokens.subspan(prompt);
      for (const int32_t t : output) ++counts_[t];
      for (const int32_t t : output) {
        if (counts_[t] == 0) continue;
        logits[t] -= p.presence_penalty + p.frequency_penalty * static_cast<float>(counts_[t]);
        counts_[t] = 0;
      }
    }
  }
  for (const auto& [token, bias] : p.logit_bias) {
    if (token >= 0 && token < vocab) logits[token] += bias;
  }
  const auto generated = static_cast<int32_t>(input.tokens.size()) - input.prompt_tokens;
  // ignore_eos bars nothing here: as in vLLM the model may choose the token, and goes on.
  if (generated < p.min_tokens) {
    for (const int32_t t : input.stop_tokens) {
      if (t >= 0 && t < vocab) logits[t] = kNever;
    }
  }
}

int32_t Sampler::choose(const SamplingInput& input) {
  const SamplingParams& p = *input.params;
  const auto vocab = static_cast<int32_t>(input.logits.size());
  const float* logits = input.logits.data();
  if (p.temperature <= 0 || p.top_k == 1) return kernels_->argmax(logits, vocab);

  const float top = kernels_->max(logits, vocab);
  const double sum =
      kernels_->exp_sum(logits, top, 1.0f / p.temperature, vocab, probabilities_.data());
  const double u = uniform(p.seed, input.tokens.size());
  const bool truncated =
      (p.top_k > 0 && p.top_k < vocab) || p.top_p < 1 || p.min_p > 0 || p.typical_p < 1;
  if (!truncated) {
    double left = u * sum;
    for (int32_t t = 0; t < vocab; ++t) {
      left -= probabilities_[t];
      if (left < 0 && logits[t] != kNever) return t;
    }
    return kernels_->argmax(logits, vocab);
  }

  // Everything below a cut that keeps at least what top-k, top-p and min-p could keep is dropped
  // before sorting: e^-12 of the top's weight is out of any useful top-p's reach unless the
  // distribution is flat, in which case the cut falls back to none.
  candidates_.clear();
  double kept = 0;
  const float floor = std::max(p.min_p, p.typical_p < 1 ? 0.0f : 6e-6f);
  for (int32_t t = 0; t < vocab; ++t) {
    if (probabilities_[t] >= floor && logits[t] != kNever) {
      candidates_.push_back({t, probabilities_[t]});
      kept += probabilities_[t];
    }
  }
  if (p.min_p <= 0 && kept < p.top_p * sum) {
    candidates_.clear();
    for (int32_t t = 0; t < vocab; ++t) {
      if (logits[t] != kNever) candidates_.push_back({t, probabilities_[t]});
    }
  }
  if (candidates_.empty()) return kernels_->argmax(logits, vocab);
  const auto heavier = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
  };
  if (p.top_k > 0 && static_cast<size_t>(p.top_k) < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + p.top_k, candidates_.end(),
                     heavier);
    candidates_.resize(p.top_k);
  }
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  if (p.typical_p < 1) {
    // Keep the tokens whose surprise is closest to the entropy, up to typical_p of the mass.
    double entropy = 0;
    for (const Candidate& c : candidates_) {
      if (c.weight > 0) entropy -= c.weight / total * std::log(c.weight / total);
    }
    const auto distance = [&](const Candidate& c) {
      return std::fabs(-std::log(std::max(c.weight / total, 1e-300)) - entropy);
    };
    std::sort(candidates_.begin(), candidates_.end(), [&](const Candidate& a, const Candidate& b) {
      const double x = distance(a), y = distance(b);
      return x != y ? x < y : a.token < b.token;
    });
    double mass = 0;
    size_t keep = 0;
    while (keep < candidates_.size() && mass < p.typical_p * total) {
      mass += candidates_[keep++].weight;
    }
    candidates_.resize(std::max<size_t>(keep, 1));
    total = mass;
  }
  std::sort(candidates_.begin(), candidates_.end(), heavier);
  if (p.top_p < 1) {
    double mass = 0;
    size_t keep = 0;
    while (keep < candidates_.size() && mass < p.top_p * total) mass += candidates_[keep++].weight;
    candidates_.resize(std::max<size_t>(keep, 1));
    total = 0;
    for (const Candidate& c : candidates_) total += c.weight;
  }
  double left = u * total;
  for (const Candidate& c : candidates_) {
    left -= c.weight;
    if (left < 0) return c.token;
  }
  return candidates_.front().token;
}

SampledToken Sampler::sample(const SamplingInput& input) {
  SampledToken out;
  const bool wants_logprobs = input.params->top_logprobs >= 0;
  if (!wants_logprobs) {
    penalize(input);
    out.token = choose(input);
    return out;
  }
  report(input, out);
  const float log_sum = out.logprob;
  // Penalties change logits in place; the chosen token's own is looked up in a copy.
  raw_.assign(input.logits.begin(), input.logits.end());
  penalize(input);
  out.token = choose(input);
  out.logprob = raw_[out.token] - log_sum;
  return out;
}

}  // namespace wok
