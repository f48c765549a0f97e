#include "bench/model_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/isa.h"

namespace wok::bench {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Sequences with a cache of their own, whose first `depth` positions count as computed.
class Sequences {
 public:
  static Result<Sequences> create(const Model& model, ComputePool& pool, const KvFormat& format,
                                  int32_t count, int32_t positions, int32_t step_tokens) {
    const int32_t each = (positions + kPageTokens - 1) / kPageTokens;
    const KvShape shape = model.kv_shape(format);
    WOK_TRY(memory, PageMemory::create(shape, each * count));
    // Memory that nobody wrote is one page of zeros, which would never leave the cache.
    const auto page_bytes = static_cast<int64_t>(shape.page_bytes());
    pool.run(each * count, [&](int32_t page, int32_t) {
      std::memset(memory.view(0, 0).pool + page * page_bytes, 0x2c,
                  static_cast<size_t>(page_bytes));
    });
    return Sequences(model, pool, std::move(memory), count, each, step_tokens);
  }

  // Computes `tokens` more of sequence 0, a chunk at a time; logits of the last one.
  double prefill(int32_t depth, int32_t tokens, int32_t chunk, bool fast) {
    const double begin = now_s();
    for (int32_t done = 0; done < tokens; done += chunk) {
      const int32_t n = std::min(chunk, tokens - done);
      tokens_.resize(n);
      positions_.resize(n);
      owner_.assign(n, 0);
      for (int32_t i = 0; i < n; ++i) {
        tokens_[i] = token(done + i);
        positions_[i] = depth + done + i;
      }
      const SequenceSpan span{0, n, depth + done + n, pages_.data()};
      const int32_t last = n - 1;
      const bool ends = done + n == tokens;
      model_->forward(
          {tokens_, positions_, {&span, 1}, owner_, {&last, ends ? size_t{1} : 0}, fast ? 0 : n},
          memory_, *pool_, *work_);
    }
    return now_s() - begin;
  }

  double decode(int32_t depth, int32_t steps) {
    tokens_.resize(count_);
    positions_.resize(count_);
    owner_.resize(count_);
    spans_.resize(count_);
    std::iota(owner_.begin(), owner_.end(), 0);
    const double begin = now_s();
    for (int32_t s = 0; s < steps; ++s) {
      for (int32_t i = 0; i < count_; ++i) {
        tokens_[i] = token(s * 31 + i);
        positions_[i] = depth + s;
        spans_[i] = {i, 1, depth + s + 1, pages_.data() + int64_t{i} * each_};
      }
      model_->forward({tokens_, positions_, spans_, owner_, owner_, count_}, memory_, *pool_,
                      *work_);
    }
    return now_s() - begin;
  }

  void profile(StepProfile* profile) { work_->profile = profile; }

 private:
  Sequences(const Model& model, ComputePool& pool, PageMemory memory, int32_t count, int32_t each,
            int32_t step_tokens)
      : model_(&model),
        pool_(&pool),
        count_(count),
        each_(each),
        work_(std::make_unique<Workspace>(model.config(), model.weights(), step_tokens, count,
                                          count, pool.threads())),
        memory_(std::move(memory)),
        pages_(static_cast<size_t>(each) * count) {
    std::iota(pages_.begin(), pages_.end(), 0);
  }
  int32_t token(int32_t n) const {
    return static_cast<int32_t>((int64_t{n} * 7919 + 13) % model_->config().vocab);
  }

  const Model* model_;
  ComputePool* pool_;
  int32_t count_, each_;
  std::unique_ptr<Workspace> work_;
  PageMemory memory_;
  std::vector<int32_t> pages_, tokens_, positions_, owner_;
  std::vector<SequenceSpan> spans_;
};

// Bytes and operations that no implementation can do without.
struct Work {
  double bytes = 0, integer_ops = 0, float_ops = 0;
};

class Cost {
 public:
  Cost(const Model& model, const KvFormat& format) : c_(model.config()) {
    const bool tied = model.file().find_tensor("output.weight") == nullptr;
    for (const ModelTensor& t : model.file().tensors()) {
      if (t.rows() < 2 || (t.name == "token_embd.weight" && !tied)) continue;
      const bool head = t.name == "output.weight" || t.name == "token_embd.weight";
      const bool expert = t.name.find("_exps.") != std::string_view::npos;
      Work& w = head ? head_ : expert ? experts_ : body_;
      w.bytes += static_cast<double>(t.file_bytes());
      const double ops = 2.0 * static_cast<double>(t.shape[0]) * static_cast<double>(t.rows());
      (t.format->codes != nullptr ? w.integer_ops : w.float_ops) += ops;
    }
    kv_bytes_ = 2.0 * c_.kv_heads * c_.head_dim * format.element_bytes;
  }

  // One step: `rows` tokens of each of `sequences`, the first at `depth`, and `heads` logit rows.
  Work step(int32_t sequences, int32_t rows, int32_t depth, int32_t heads) const {
    Work w = body_;
    const double tokens = double{1} * sequences * rows;
    w.integer_ops *= tokens;
    w.float_ops *= tokens;
    if (const ExpertConfig& x = c_.experts; x.count > 0) {
      const double share = static_cast<double>(x.used) / x.count;
      // Of so many experts some token has need, if tokens choose as if by lot.
      w.bytes += experts_.bytes * (1 - std::pow(1 - share, tokens));
      w.integer_ops += experts_.integer_ops * share * tokens;
      w.float_ops += experts_.float_ops * share * tokens;
    }
    if (heads > 0) {
      w.bytes += head_.bytes;
      w.integer_ops += head_.integer_ops * heads;
      w.float_ops += head_.float_ops * heads;
    }
    for (int32_t layer = 0; layer < c_.layers; ++layer) {
      const int32_t window = c_.kinds.empty() ? 0 : c_.kinds[layer].window;
      const double most = window > 0 ? window : 1e18;
      const double end = depth + rows;
      w.bytes += sequences * kv_bytes_ * (std::min(end, most + rows) + rows);
      double seen = 0;
      for (int32_t i = 0; i < rows; ++i) seen += std::min<double>(depth + i + 1, most);
      w.float_ops += 4.0 * sequences * seen * c_.heads * c_.head_dim;
    }
    return w;
  }

 private:
  const DecoderConfig& c_;
  Work head_, body_, experts_;
  double kv_bytes_ = 0;
};

struct Limits {
  double bytes_per_s, integer_per_s, float_per_s;

  static Limits of(const Roof& roof, int32_t threads) {
    return {
        roof.read_gb_per_s("DRAM", threads) * 1e9, roof.peak_gop_per_s("int8", threads) * 1e9,
        std::max(roof.peak_gop_per_s("bf16", threads), roof.peak_gop_per_s("fp32", threads)) * 1e9};
  }
  double memory_s(const Work& w) const { return w.bytes / bytes_per_s; }
  double compute_s(const Work& w) const {
    return w.integer_ops / integer_per_s + w.float_ops / float_per_s;
  }
};

void keep_best(Roof& best, const Roof& now) {
  if (best.reads.empty()) {
    best = now;
    return;
  }
  for (size_t i = 0; i < best.reads.size(); ++i) {
    best.reads[i].gb_per_s = std::max(best.reads[i].gb_per_s, now.reads[i].gb_per_s);
  }
  for (size_t i = 0; i < best.peaks.size(); ++i) {
    best.peaks[i].gop_per_s = std::max(best.peaks[i].gop_per_s, now.peaks[i].gop_per_s);
  }
}

class Grid {
 public:
  Grid(const Model& model, const ModelBenchOptions& options, ModelBenchReport& report,
       const std::function<void(const ModelBenchRow&)>& seen, RoofMeter meter)
      : model_(model),
        options_(options),
        report_(report),
        seen_(seen),
        meter_(std::move(meter)),
        cost_(model, *options.kv_format) {}

  Status run() {
    for (const int32_t threads : options_.threads) {
      ComputePool pool(threads);
      report_.roofs.emplace_back();
      measure_roof(pool);
      for (const int32_t depth : options_.depths) {
        for (const int32_t prompt : options_.prompts) {
          WOK_RETURN_IF_ERROR(prefill(pool, prompt, depth));
        }
        for (const int32_t output : options_.outputs) {
          for (const int32_t batch : options_.batches) {
            WOK_RETURN_IF_ERROR(decode(pool, output, depth, batch));
          }
        }
      }
    }
    return Ok{};
  }

 private:
  void measure_roof(ComputePool& pool) {
    keep_best(report_.roofs.back(),
              meter_.measure(pool, {.repetitions = 3, .caches = false, .all_peaks = false}));
  }

  Status prefill(ComputePool& pool, int32_t prompt, int32_t depth) {
    ModelBenchRow row{.test = fmt::format("pp{}", prompt), .depth = depth, .batch = 1};
    const int32_t chunk = std::min(options_.chunk, prompt);
    WOK_TRY(sequences,
            Sequences::create(model_, pool, *options_.kv_format, 1, depth + prompt, chunk));
    measure(pool, row, prompt,
            [&] { return sequences.prefill(depth, prompt, chunk, options_.fast_prefill); });
    std::vector<Work> steps;
    for (int32_t done = 0; done < prompt; done += chunk) {
      const int32_t n = std::min(chunk, prompt - done);
      steps.push_back(cost_.step(1, n, depth + done, done + n == prompt ? 1 : 0));
    }
    finish(pool, row, prompt, steps);
    return Ok{};
  }

  Status decode(ComputePool& pool, int32_t output, int32_t depth, int32_t batch) {
    ModelBenchRow row{.test = fmt::format("tg{}", output), .depth = depth, .batch = batch};
    WOK_TRY(sequences,
            Sequences::create(model_, pool, *options_.kv_format, batch, depth + output, batch));
    measure(pool, row, output * batch, [&] { return sequences.decode(depth, output); });
    std::vector<Work> steps;
    for (int32_t s = 0; s < output; ++s) steps.push_back(cost_.step(batch, 1, depth + s, batch));
    finish(pool, row, output * batch, steps);
    return Ok{};
  }

  template <class Fn>
  void measure(ComputePool& pool, ModelBenchRow& row, int32_t tokens, const Fn& fn) {
    row.threads = pool.threads();
    fn();  // warm-up
    double sum = 0, squares = 0;
    for (int32_t r = 0; r < options_.repetitions; ++r) {
      const double rate = tokens / fn();
      sum += rate;
      squares += rate * rate;
    }
    const double n = options_.repetitions;
    row.tokens_per_s = sum / n;
    row.stddev = n > 1 ? std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1))) : 0;
  }

  void finish(ComputePool& pool, ModelBenchRow& row, int32_t tokens,
              const std::vector<Work>& steps) {
    measure_roof(pool);
    const Limits limits = Limits::of(report_.roofs.back(), pool.threads());
    double bytes = 0, memory_s = 0, compute_s = 0, roof_s = 0;
    for (const Work& w : steps) {
      bytes += w.bytes;
      memory_s += limits.memory_s(w);
      compute_s += limits.compute_s(w);
      roof_s += std::max(limits.memory_s(w), limits.compute_s(w));
    }
    row.bytes_per_token = bytes / tokens;
    row.roof = tokens / roof_s;
    row.memory_bound = memory_s > compute_s;
    report_.rows.push_back(row);
    if (seen_) seen_(row);
  }

  const Model& model_;
  const ModelBenchOptions& options_;
  ModelBenchReport& report_;
  const std::function<void(const ModelBenchRow&)>& seen_;
  RoofMeter meter_;
  Cost cost_;
};

Status check_context(const Model& model, int32_t depth, int32_t tokens) {
  if (int64_t{depth} + tokens <= model.config().context_tokens) return Ok{};
  return too_large(fmt::format(
      "a depth of {} and {} tokens more are over the model's context of {} tokens; ask for less",
      depth, tokens, model.config().context_tokens));
}

}  // namespace

Result<ModelBenchReport> bench_model(const Model& model, const std::string& name,
                                     const ModelBenchOptions& options,
                                     const std::function<void(const ModelBenchRow&)>& seen) {
  for (const int32_t depth : options.depths) {
    for (const int32_t n : options.prompts) {
      WOK_RETURN_IF_ERROR(check_context(model, depth, n));
    }
    for (const int32_t n : options.outputs) {
      WOK_RETURN_IF_ERROR(check_context(model, depth, n));
    }
  }
  constexpr size_t kDramBytes = size_t{512} << 20;
  WOK_TRY(meter, RoofMeter::create(kDramBytes));
  ModelBenchReport report{name, cpu_model(), model.kernels().name, options.kv_format->name, {}, {}};
  WOK_RETURN_IF_ERROR(Grid(model, options, report, seen, std::move(meter)).run());
  return report;
}

Result<StepProfile> profile_model(const Model& model, const ProfileOptions& options) {
  const int32_t tokens = options.decode ? options.steps : options.prompt;
  WOK_RETURN_IF_ERROR(check_context(model, options.depth, tokens));
  ComputePool pool(options.threads);
  const int32_t count = options.decode ? options.batch : 1;
  WOK_TRY(sequences, Sequences::create(model, pool, *options.kv_format, count,
                                       options.depth + tokens, options.decode ? count : tokens));
  const auto run = [&] {
    if (options.decode) {
      sequences.decode(options.depth, options.steps);
    } else {
      sequences.prefill(options.depth, options.prompt, options.prompt, options.fast_prefill);
    }
  };
  run();
  StepProfile profile;
  profile.spans.reserve(size_t{1} << 16);
  sequences.profile(&profile);
  run();
  return profile;
}

}  // namespace wok::bench
