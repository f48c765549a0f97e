// Encoders beside transformers and sentence-transformers (tools/golden/encoder.py), on every
// instruction set of this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "kernels/isa.h"
#include "models/encoder.h"
#include "models/model.h"
#include "models/read_info.h"

namespace wok {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kGolden = WOK_SOURCE_DIR "/tests/golden/";

json golden() {
  std::ifstream file(kGolden + "encoder.json");
  return json::parse(file);
}

std::vector<std::string> isas() {
  std::vector<std::string> names;
  const auto choice = choose_isa("");
  for (const IsaOption& option : choice->options) {
    if (option.available) names.push_back(option.name);
  }
  return names;
}

struct Loaded {
  std::unique_ptr<ComputePool> pool = std::make_unique<ComputePool>(2);
  std::unique_ptr<EmbeddingModel> model;
  std::string error;
};

Loaded load(const std::string& path, const std::string& isa = "") {
  Loaded out;
  auto file = ModelFile::open(path);
  if (!file.ok()) {
    out.error = file.error().message;
    return out;
  }
  auto model = load_encoder(std::make_shared<const ModelFile>(std::move(file).value()),
                            *choose_isa(isa)->kernels, {.pack_dir = "", .pool = out.pool.get()});
  if (model.ok()) {
    out.model = std::move(model).value();
  } else {
    out.error = model.error().message;
  }
  return out;
}

std::vector<float> compute(EmbeddingModel& model, const std::vector<TokenSequence>& sequences) {
  std::vector<const TokenSequence*> views;
  for (const TokenSequence& sequence : sequences) views.push_back(&sequence);
  std::vector<float> out(views.size() * static_cast<size_t>(model.width()));
  model.compute(views, out.data());
  return out;
}

std::vector<TokenSequence> golden_texts(const json& all) {
  std::vector<TokenSequence> sequences;
  for (const json& text : all["texts"]) sequences.push_back({text["ids"], {}});
  return sequences;
}

double cosine(const float* a, const std::vector<float>& b) {
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    dot += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return dot / std::sqrt(aa * bb);
}

TEST(Encoder, EmbeddingsAreSentenceTransformers) {
  const json all = golden();
  for (const std::string& isa : isas()) {
    const Loaded loaded = load(kGolden + "tiny_bert", isa);
    ASSERT_NE(loaded.model, nullptr) << loaded.error;
    EXPECT_EQ(loaded.model->context_tokens(), 40) << "what the folder's tokenizer allows";
    const std::vector<float> got = compute(*loaded.model, golden_texts(all));
    for (size_t t = 0; t < all["texts"].size(); ++t) {
      const std::vector<float> want = all["texts"][t]["embedding"];
      for (size_t i = 0; i < want.size(); ++i) {
        // Keys and values are kept in 16 bits; a fault is some hundred times as large.
        EXPECT_NEAR(got[t * want.size() + i], want[i], 1e-3) << isa << ", text " << t;
      }
    }
  }
}

TEST(Encoder, QuantizedGgufIsTheSameModel) {
  const json all = golden();
  for (const std::string& isa : isas()) {
    const Loaded loaded = load(kGolden + "tiny_bert.gguf", isa);
    ASSERT_NE(loaded.model, nullptr) << loaded.error;
    const std::vector<float> got = compute(*loaded.model, golden_texts(all));
    for (size_t t = 0; t < all["texts"].size(); ++t) {
      EXPECT_GT(cosine(&got[t * 32], all["texts"][t]["embedding"]), 0.999) << isa << ", text " << t;
    }
  }
}

TEST(Encoder, ScoresAreTransformers) {
  const json all = golden();
  std::vector<TokenSequence> pairs;
  for (const json& d : all["documents"]) pairs.push_back({d["ids"], d["types"]});
  for (const std::string& isa : isas()) {
    const Loaded loaded = load(kGolden + "tiny_bert_rerank", isa);
    ASSERT_NE(loaded.model, nullptr) << loaded.error;
    EXPECT_TRUE(loaded.model->ranks());
    const std::vector<float> got = compute(*loaded.model, pairs);
    for (size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_NEAR(got[i], all["documents"][i]["logit"].get<double>(), 3e-3) << isa;
    }
    pairs[0].types.clear();
    EXPECT_GT(std::abs(compute(*loaded.model, pairs)[0] - got[0]), 0.01) << "types matter";
    pairs[0].types = all["documents"][0]["types"].get<std::vector<int32_t>>();
  }
}

// Whatever else is in the batch: sequences of all lengths, up to the fullest batch.
TEST(Encoder, AloneIsTheSameAsInABatch) {
  std::mt19937 random(5);
  for (const char* name : {"tiny_bert", "tiny_bert.gguf"}) {
    const Loaded loaded = load(kGolden + name);
    ASSERT_NE(loaded.model, nullptr) << loaded.error;
    std::vector<TokenSequence> sequences;
    int32_t left = loaded.model->batch_tokens();
    for (int32_t length = 1; left > 0; length = length % 40 + 1) {
      sequences.emplace_back();
      for (int32_t i = std::min(length, left); i > 0; --i, --left) {
        sequences.back().tokens.push_back(static_cast<int32_t>(random() % 110));
      }
    }
    const std::vector<float> together = compute(*loaded.model, sequences);
    const auto width = static_cast<size_t>(loaded.model->width());
    for (size_t s = 0; s < sequences.size(); s += 3) {
      const std::vector<float> alone = compute(*loaded.model, {sequences[s]});
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), &together[s * width]))
          << name << ", sequence " << s << " of " << sequences[s].tokens.size() << " tokens";
    }
  }
}

TEST(Encoder, SaysWhatItIs) {
  const auto embedder = read_model_info(kGolden + "tiny_bert");
  ASSERT_TRUE(embedder.ok()) << embedder.error().message;
  EXPECT_EQ(embedder->pooling, "mean");
  EXPECT_TRUE(embedder->normalize);
  EXPECT_EQ(embedder->kv_bytes_per_token, 0u);
  const auto ranker = read_model_info(kGolden + "tiny_bert_rerank");
  ASSERT_TRUE(ranker.ok()) << ranker.error().message;
  EXPECT_EQ(ranker->pooling, "rank");
  // As a decoder it is refused with the way out.
  auto file = ModelFile::open(kGolden + "tiny_bert");
  const auto decoder = read_decoder_config(*file);
  ASSERT_FALSE(decoder.ok());
  EXPECT_THAT(decoder.error().message, HasSubstr("/v1/embeddings"));
}

// A copy of a folder with one JSON file changed.
class ChangedFolder {
 public:
  ChangedFolder(const std::string& name, const std::string& file, const json& patch) {
    std::filesystem::copy(kGolden + name, path_, std::filesystem::copy_options::recursive);
    json whole;
    std::ifstream(path_ + "/" + file) >> whole;
    whole.merge_patch(patch);
    std::ofstream(path_ + "/" + file) << whole;
  }
  ~ChangedFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "wok_encoder_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST(Encoder, WhatItDoesNotRunIsRefusedByName) {
  const struct {
    const char *folder, *file;
    json patch;
    const char* reason;
  } kCases[] = {
      {"tiny_bert", "config.json", {{"hidden_act", "relu"}}, "hidden_act is \"relu\""},
      {"tiny_bert", "config.json", {{"position_embedding_type", "relative_key"}}, "relative_key"},
      {"tiny_bert", "config.json", {{"num_hidden_layers", 3}}, "blk.2.attn_q.weight"},
      {"tiny_bert", "config.json", {{"num_hidden_layers", 1}}, "blk.1."},
      {"tiny_bert", "config.json", {{"num_attention_heads", 4}}, "4 heads"},
      {"tiny_bert",
       "config.json",
       {{"architectures", {"BertForTokenClassification"}}},
       "BertForTokenClassification"},
      {"tiny_bert", "1_Pooling/config.json", {{"pooling_mode", "max"}}, "pools by 'max'"},
      {"tiny_bert",
       "config_sentence_transformers.json",
       {{"default_prompt_name", "query"}},
       "default_prompt_name"},
      {"tiny_bert_rerank", "config.json", {{"id2label", {{"1", "b"}}}}, "2 labels"},
  };
  for (const auto& c : kCases) {
    const ChangedFolder folder(c.folder, c.file, c.patch);
    const Loaded loaded = load(folder.path());
    ASSERT_EQ(loaded.model, nullptr) << c.reason;
    EXPECT_THAT(loaded.error, HasSubstr(c.reason));
  }
}

}  // namespace
}  // namespace wok
