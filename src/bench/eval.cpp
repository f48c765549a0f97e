#include "bench/eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace wok::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int32_t kPieceTokens = 128;  // computed at once; as many rows of logits are kept

// One model's way through a chunk.
class Reader {
 public:
  static Result<Reader> create(const EvalModel& m, int32_t chunk_tokens, ComputePool& pool) {
    const DecoderConfig& c = m.model->config();
    if (chunk_tokens > c.context_tokens) {
      return invalid(
          fmt::format("chunks of {} tokens are over a model's context of {}; ask for less",
                      chunk_tokens, c.context_tokens));
    }
    const int32_t pages = (chunk_tokens + kPageTokens - 1) / kPageTokens;
    WOK_TRY(memory, PageMemory::create(m.model->kv_shape(*m.kv_format), pages));
    return Reader(m, std::move(memory), pages, pool);
  }

  // Logits [n - first, vocab] of rows [first, n) of the tokens that stand at `position` and after.
  const float* read(std::span<const int32_t> tokens, int32_t position, int32_t first) {
    const auto n = static_cast<int32_t>(tokens.size());
    const auto begin = Clock::now();
    positions_.resize(n);
    std::iota(positions_.begin(), positions_.end(), position);
    owner_.assign(n, 0);
    rows_.resize(n - first);
    std::iota(rows_.begin(), rows_.end(), first);
    const SequenceSpan span{0, n, position + n, pages_.data()};
    m_.model->forward({tokens, positions_, {&span, 1}, owner_, rows_, m_.fast_prefill ? 0 : n},
                      memory_, *pool_, *work_);
    seconds_ += std::chrono::duration<double>(Clock::now() - begin).count();
    return work_->logits.data();
  }
  double seconds() const { return seconds_; }

 private:
  Reader(const EvalModel& m, PageMemory memory, int32_t pages, ComputePool& pool)
      : m_(m),
        pool_(&pool),
        memory_(std::move(memory)),
        work_(std::make_unique<Workspace>(m.model->config(), m.model->weights(), kPieceTokens, 1,
                                          kPieceTokens, pool.threads())),
        pages_(pages) {
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  EvalModel m_;
  ComputePool* pool_;
  PageMemory memory_;
  std::unique_ptr<Workspace> work_;
  std::vector<int32_t> pages_, positions_, owner_, rows_;
  double seconds_ = 0;
};

// What is known of one scored token.
struct Score {
  double loss = 0, reference_loss = 0, kl = 0;
  bool same_top = false, right = false, reference_right = false;
};

// log of the sum of exp(x); y is left holding exp(x - max).
double log_sum(const KernelTable& kernels, const float* x, int32_t n, float* y) {
  const float largest = kernels.max(x, n);
  return largest + std::log(kernels.exp_sum(x, largest, 1.0f, n, y));
}

Score score(const KernelTable& kernels, const float* q, const float* p, int32_t n, int32_t right,
            float* scratch) {
  Score s;
  const double log_q = log_sum(kernels, q, n, scratch);
  const int32_t top = kernels.argmax(q, n);
  s.loss = log_q - q[right];
  s.right = top == right;
  if (p == nullptr) return s;
  const float largest = kernels.max(p, n);
  const double total = kernels.exp_sum(p, largest, 1.0f, n, scratch);
  const double log_p = largest + std::log(total);
  const int32_t reference_top = kernels.argmax(p, n);
  s.reference_loss = log_p - p[right];
  s.reference_right = reference_top == right;
  s.same_top = reference_top == top;
  double difference = 0;
  for (int32_t i = 0; i < n; ++i) difference += scratch[i] * (double{p[i]} - q[i]);
  s.kl = difference / total - log_p + log_q;
  return s;
}

// The mean over all tokens; its spread from the means of the chunks.
template <class Value>
Mean mean_of(const std::vector<std::vector<Score>>& chunks, const Value& value) {
  Mean out;
  std::vector<double> means;
  int64_t count = 0;
  for (const auto& chunk : chunks) {
    double sum = 0;
    int64_t n = 0;
    for (const Score& s : chunk) {
      if (const std::optional<double> v = value(s)) sum += *v, ++n;
    }
    out.value += sum;
    count += n;
    if (n > 0) means.push_back(sum / static_cast<double>(n));
  }
  out.value /= static_cast<double>(count);
  const auto n = static_cast<double>(means.size());
  double squares = 0;
  const double centre = std::accumulate(means.begin(), means.end(), 0.0) / n;
  for (const double m : means) squares += (m - centre) * (m - centre);
  out.half_width = means.size() < 2 ? NAN : 1.96 * std::sqrt(squares / (n - 1) / n);
  return out;
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[std::lround(q * static_cast<double>(sorted.size() - 1))];
}

// exp of a mean of logarithms.
Mean exponential(const Mean& m) {
  const double value = std::exp(m.value);
  return {value, value * m.half_width};
}

Divergence divergence_of(const std::vector<std::vector<Score>>& chunks) {
  using Maybe = std::optional<double>;
  Divergence d;
  d.reference_perplexity =
      std::exp(mean_of(chunks, [](const Score& s) { return Maybe(s.reference_loss); }).value);
  d.perplexity_ratio =
      exponential(mean_of(chunks, [](const Score& s) { return Maybe(s.loss - s.reference_loss); }));
  d.kl = mean_of(chunks, [](const Score& s) { return Maybe(s.kl); });
  d.same_top = mean_of(chunks, [](const Score& s) { return Maybe(s.same_top ? 1 : 0); });
  d.flipped = mean_of(chunks, [](const Score& s) {
    return s.reference_right ? Maybe(s.right ? 0 : 1) : std::nullopt;
  });
  const auto delta = [](const Score& s) { return std::exp(-s.loss) - std::exp(-s.reference_loss); };
  d.right_delta = mean_of(chunks, [&](const Score& s) { return Maybe(delta(s)); });
  d.right_delta_rms =
      std::sqrt(mean_of(chunks, [&](const Score& s) { return Maybe(delta(s) * delta(s)); }).value);
  std::vector<double> kl;
  for (const auto& chunk : chunks) {
    for (const Score& s : chunk) kl.push_back(s.kl);
  }
  std::sort(kl.begin(), kl.end());
  d.kl_median = quantile(kl, 0.5);
  d.kl_99 = quantile(kl, 0.99);
  d.kl_999 = quantile(kl, 0.999);
  d.kl_max = kl.back();
  return d;
}

}  // namespace

Result<EvalReport> evaluate(const EvalModel& model, const EvalModel* against,
                            const std::vector<int32_t>& tokens, const EvalOptions& options,
                            ComputePool& pool,
                            const std::function<bool(int32_t done, int32_t of)>& progress) {
  const int32_t n = options.chunk_tokens, vocab = model.model->config().vocab;
  const auto all = static_cast<int32_t>(std::min<size_t>(tokens.size() / n, INT32_MAX));
  if (all == 0) {
    return invalid(
        fmt::format("the text has {} tokens, fewer than one chunk of {}; take a longer "
                    "text, or shorter chunks",
                    tokens.size(), n));
  }
  if (against != nullptr && against->model->config().vocab != vocab) {
    return invalid(fmt::format(
        "vocabularies of {} and {} tokens cannot be compared; take two models of one family", vocab,
        against->model->config().vocab));
  }
  const int32_t chunks = options.chunks > 0 ? std::min(options.chunks, all) : all;
  WOK_TRY(reader, Reader::create(model, n, pool));
  std::optional<Reader> reference;
  if (against != nullptr) {
    WOK_TRY(other, Reader::create(*against, n, pool));
    reference.emplace(std::move(other));
  }
  const KernelTable& kernels = model.model->kernels();
  std::vector<std::vector<float>> scratch(pool.threads(), std::vector<float>(vocab));
  std::vector<std::vector<Score>> scores(chunks);
  for (int32_t chunk = 0; chunk < chunks; ++chunk) {
    if (!progress(chunk, chunks)) return Error{ErrorKind::kCancelled, "interrupted"};
    std::vector<int32_t> text(tokens.begin() + int64_t{chunk} * n,
                              tokens.begin() + int64_t{chunk + 1} * n);
    const std::vector<int32_t> next(text.begin() + 1, text.end());
    if (options.bos_id >= 0) text[0] = options.bos_id;
    // The last token's successor is in the next chunk: nothing to compare with.
    for (int32_t at = 0; at < n; at += kPieceTokens) {
      const int32_t end = std::min(at + kPieceTokens, n);
      const int32_t first = std::clamp(n / 2 - at, 0, end - at);
      const std::span<const int32_t> piece(text.data() + at, end - at);
      const float* q = reader.read(piece, at, first);
      const float* p = reference ? reference->read(piece, at, first) : nullptr;
      const int32_t rows = std::min(end, n - 1) - at - first;
      if (rows <= 0) continue;
      const size_t before = scores[chunk].size();
      scores[chunk].resize(before + rows);
      pool.run(rows, [&](int32_t r, int32_t worker) {
        const int64_t row = int64_t{r} * vocab;
        scores[chunk][before + r] = score(kernels, q + row, p == nullptr ? p : p + row, vocab,
                                          next[at + first + r], scratch[worker].data());
      });
      for (const Score& s : scores[chunk]) {
        if (std::isfinite(s.loss) && std::isfinite(s.reference_loss)) continue;
        return invalid(fmt::format(
            "{} computes values that are no numbers in chunk {}: its weights are damaged, or too "
            "large for it",
            std::isfinite(s.loss) ? "the reference" : "the model", chunk));
      }
    }
  }
  progress(chunks, chunks);
  EvalReport report;
  report.chunks = chunks;
  report.chunk_tokens = n;
  for (const auto& chunk : scores) report.scored_tokens += static_cast<int64_t>(chunk.size());
  report.log_loss = mean_of(scores, [](const Score& s) { return std::optional<double>(s.loss); });
  report.perplexity = exponential(report.log_loss);
  if (against != nullptr) report.divergence = divergence_of(scores);
  report.tokens_per_s = int64_t{chunks} * n / reader.seconds();
  return report;
}

}  // namespace wok::bench
