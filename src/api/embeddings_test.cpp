// /v1/embeddings and /v1/rerank on tiny real models (tests/golden), beside sentence-transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "api/base64.h"
#include "api/load_embedder.h"
#include "tests/support/api_fixture.h"

namespace wok {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kFolder = WOK_SOURCE_DIR "/tests/golden/";

const json& golden() {
  static const json all = [] {
    std::ifstream file(kFolder + "encoder.json");
    return json::parse(file);
  }();
  return all;
}

struct Server {
  explicit Server(const std::string& name) {
    LoadOptions options;
    options.embeddings = true;
    options.engine.threads = 1;
    auto loaded = load_model(kFolder + name, "tiny", options);
    if (!loaded.ok()) throw std::runtime_error(loaded.error().message);
    model = std::move(loaded).value();
    context.set_model(model.get());
  }
  ~Server() { context.stop(); }

  std::shared_ptr<test::RecordingWriter> post(const char* path, const json& body) {
    auto writer = std::make_shared<test::RecordingWriter>();
    dispatch(context, *find_route("POST", path).endpoint, {"POST", path, body.dump(), 0}, writer);
    if (!writer->wait()) std::abort();
    return writer;
  }
  std::string error(const char* path, const json& body, int status = 400) {
    const auto writer = post(path, body);
    EXPECT_EQ(writer->whole().status, status) << writer->whole().body;
    return writer->json()["error"].value("message", "");
  }

  ApiContext context;
  std::unique_ptr<ServedModel> model;
};

std::vector<float> unpack_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    if ((have += 6) >= 8) bytes += static_cast<char>(bits >> (have -= 8));
  }
  std::vector<float> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), out.size() * 4);
  return out;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, double within) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], within) << i;
}

TEST(Embeddings, TextsAreSentenceTransformers) {
  Server server("tiny_bert");
  json texts = json::array();
  size_t tokens = 0;
  for (const json& text : golden()["texts"]) {
    texts.push_back(text["text"]);
    tokens += text["ids"].size();
  }
  const json many =
      server.post("/v1/embeddings", {{"model", "tiny"}, {"input", texts}, {"user", "me"}})->json();
  EXPECT_EQ(many["object"], "list");
  EXPECT_EQ(many["model"], "tiny");
  EXPECT_EQ(many["usage"], json({{"prompt_tokens", tokens}, {"total_tokens", tokens}}));
  ASSERT_EQ(many["data"].size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(many["data"][i]["index"], i);
    EXPECT_EQ(many["data"][i]["object"], "embedding");
    expect_near(many["data"][i]["embedding"], golden()["texts"][i]["embedding"], 1e-3);
  }
  // One text, its ids, and a list of such lists: the same numbers.
  const json same = many["data"][2]["embedding"];
  const json& text = golden()["texts"][2];
  for (const json& input : {text["text"], text["ids"], json::array({text["ids"]})}) {
    const json one = server.post("/v1/embeddings", {{"input", input}})->json();
    EXPECT_EQ(one["data"][0]["embedding"], same) << input;
  }
  const json packed =
      server.post("/v1/embeddings", {{"input", text["text"]}, {"encoding_format", "base64"}})
          ->json();
  EXPECT_EQ(unpack_base64(packed["data"][0]["embedding"]), same.get<std::vector<float>>());
}

TEST(Embeddings, FewerDimensionsHaveLengthOneAgain) {
  Server server("tiny_bert");
  const json body{{"input", "the sea"}, {"dimensions", 8}};
  const std::vector<float> got =
      server.post("/v1/embeddings", body)->json()["data"][0]["embedding"];
  ASSERT_EQ(got.size(), 8u);
  double squares = 0;
  for (const float x : got) squares += double{x} * x;
  EXPECT_NEAR(squares, 1, 1e-6);
}

TEST(Embeddings, TooLongIsRefusedOrCutWhenAsked) {
  Server server("tiny_bert");
  const json text = golden()["long"]["text"];
  const std::string message = server.error("/v1/embeddings", {{"input", {"cat", text}}});
  EXPECT_THAT(message, HasSubstr("input[1] has 86 tokens (n_prompt = 86)"));
  EXPECT_THAT(message, HasSubstr("n_ctx = 40"));
  for (const json& how : {json{{"truncate", true}}, json{{"truncate_prompt_tokens", -1}}}) {
    json body{{"input", text}};
    body.update(how);
    const json reply = server.post("/v1/embeddings", body)->json();
    EXPECT_EQ(reply["usage"]["prompt_tokens"], 40);
    expect_near(reply["data"][0]["embedding"], golden()["long"]["embedding"], 1e-3);
  }
  const json cut =
      server.post("/v1/embeddings", {{"input", text}, {"truncate_prompt_tokens", 5}})->json();
  EXPECT_EQ(cut["usage"]["prompt_tokens"], 5);
  const json ids(41, 7);
  server.error("/v1/embeddings", {{"input", ids}});
  EXPECT_EQ(server.post("/v1/embeddings", {{"input", ids}, {"truncate", true}})
                ->json()["usage"]["prompt_tokens"],
            40);
}

TEST(Embeddings, WhatIsNoInputIsSaidSo) {
  Server server("tiny_bert");
  const std::pair<json, const char*> cases[] = {
      {json::object(), "`input` is missing"},
      {{{"input", ""}}, "`input` is empty"},
      {{{"input", json::array()}}, "`input` is empty"},
      {{{"input", {"a", ""}}}, "`input[1]` is empty"},
      {{{"input", json::array({json::array()})}}, "`input[0]` is empty"},
      {{{"input", 3}}, "found 3"},
      {{{"input", {{{"text", "a"}}}}}, "an object"},
      {{{"input", {1, 110}}}, "found 110"},
      {{{"input", {1, "a"}}}, "found \"a\""},
      {{{"input", std::vector<std::string>(2049, "a")}}, "2049 texts"},
      {{{"input", "a"}, {"encoding_format", "int8"}}, "encoding_format"},
      {{{"input", "a"}, {"dimensions", 33}}, "from 1 to 32"},
      {{{"input", "a"}, {"truncate_prompt_tokens", 41}}, "from -1 to 40"},
      {{{"input", "a"}, {"truncate_prompt_tokens", 0}}, "leaves nothing"},
      {{{"input", "a"}, {"prompt_name", "query"}}, "prompt_name"},
  };
  for (const auto& [body, reason] : cases) {
    EXPECT_THAT(server.error("/v1/embeddings", body), HasSubstr(reason));
  }
  EXPECT_THAT(server.error("/v1/embeddings", {{"model", "other"}, {"input", "a"}}, 404),
              HasSubstr("tiny"));
}

TEST(Rerank, OrderAndScoresAreTransformers) {
  Server server("tiny_bert_rerank");
  json documents = json::array();
  std::vector<std::pair<double, size_t>> want;
  for (const json& d : golden()["documents"]) {
    want.emplace_back(1 / (1 + std::exp(-d["logit"].get<double>())), documents.size());
    documents.push_back(d["text"]);
  }
  std::sort(want.rbegin(), want.rend());
  documents[1] = {{"text", documents[1]}};
  const json body{{"model", "tiny"}, {"query", golden()["query"]}, {"documents", documents}};
  for (const char* path : {"/v1/rerank", "/rerank"}) {
    const json reply = server.post(path, body)->json();
    ASSERT_EQ(reply["results"].size(), documents.size()) << reply;
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(reply["results"][i]["index"], want[i].second);
      EXPECT_NEAR(reply["results"][i]["relevance_score"].get<double>(), want[i].first, 1e-3);
      EXPECT_FALSE(reply["results"][i].contains("document"));
    }
  }
  json some = body;
  some.update({{"top_n", 2}, {"return_documents", true}, {"raw_scores", true}});
  const json reply = server.post("/v1/rerank", some)->json();
  ASSERT_EQ(reply["results"].size(), 2u);
  const size_t best = want[0].second;
  EXPECT_EQ(reply["results"][0]["document"]["text"], golden()["documents"][best]["text"]);
  EXPECT_NEAR(reply["results"][0]["relevance_score"].get<double>(),
              golden()["documents"][best]["logit"].get<double>(), 3e-3);
  EXPECT_GT(reply["usage"]["total_tokens"], 50);
}

TEST(Rerank, WhatIsWrongIsSaidSo) {
  Server server("tiny_bert_rerank");
  const std::pair<json, const char*> cases[] = {
      {{{"documents", {"a"}}}, "`query` is missing"},
      {{{"query", "a"}}, "`documents` is missing"},
      {{{"query", "a"}, {"documents", json::array()}}, "1 to 2048"},
      {{{"query", "a"}, {"documents", {"b", 3}}}, "`documents[1]`"},
      {{{"query", "a"}, {"documents", {"b"}}, {"top_n", 0}}, "top_n"},
      {{{"query", "a"}, {"documents", {"b", golden()["long"]["text"]}}},
       "with the query, documents[1] has"},
      {{{"query", "a"}, {"documents", {"b"}}, {"max_chunks_per_doc", 3}}, "max_chunks_per_doc"},
  };
  for (const auto& [body, reason] : cases) {
    EXPECT_THAT(server.error("/v1/rerank", body), HasSubstr(reason));
  }
  const json cut = server
                       .post("/v1/rerank", {{"query", golden()["query"]},
                                            {"documents", json::array({golden()["long"]["text"]})},
                                            {"truncate", true}})
                       ->json();
  EXPECT_EQ(cut["usage"]["total_tokens"], 40);
}

TEST(Embeddings, ModelsAnswerOnlyWhatTheyCan) {
  const json chat{{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  const json embed{{"input", "hi"}};
  const json rank{{"query", "a"}, {"documents", {"b"}}};
  {
    Server server("tiny_bert");
    EXPECT_THAT(server.error("/v1/chat/completions", chat), HasSubstr("answers at /v1/embeddings"));
    EXPECT_THAT(server.error("/v1/completions", {{"prompt", "a"}}), HasSubstr("/v1/embeddings"));
    EXPECT_THAT(server.error("/v1/rerank", rank), HasSubstr("makes embeddings"));
    EXPECT_EQ(server.post("/apply-template", chat)->whole().status, 400);
  }
  {
    Server server("tiny_bert_rerank");
    EXPECT_THAT(server.error("/v1/embeddings", embed), HasSubstr("/v1/rerank"));
  }
  test::ApiFixture generator;
  for (const auto& [path, body] : {std::pair{"/v1/embeddings", embed}, {"/v1/rerank", rank}}) {
    const auto reply = generator.post(path, body);
    EXPECT_EQ(reply->whole().status, 400);
    EXPECT_THAT(reply->whole().body, HasSubstr("generates text"));
  }
}

TEST(Embeddings, WhoeverGeneratesRefusesTheModel) {
  const auto loaded = load_model(kFolder + "tiny_bert", "tiny", {});
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("it makes no text"));
}

TEST(Embeddings, OtherEndpointsKnowTheModel) {
  Server server("tiny_bert");
  const auto get = [&](const char* path) {
    auto writer = std::make_shared<test::RecordingWriter>();
    dispatch(server.context, *find_route("GET", path).endpoint, {"GET", path, "", 0}, writer);
    EXPECT_TRUE(writer->wait());
    return writer->whole();
  };
  server.post("/v1/embeddings", {{"input", "the sea"}});
  EXPECT_EQ(json::parse(get("/v1/models").body)["data"][0]["max_model_len"], 40);
  EXPECT_EQ(json::parse(get("/health").body)["steps"], 1);
  EXPECT_THAT(get("/metrics").body, HasSubstr("wok_prompt_tokens_total{model_name=\"tiny\"} 4"));
  EXPECT_EQ(server.post("/tokenize", {{"prompt", "the sea"}})->json()["count"], 4);
  EXPECT_EQ(server.post("/detokenize", {{"tokens", {77, 82}}})->json()["prompt"], "the sea");
  server.context.drain();
  EXPECT_EQ(server.post("/v1/embeddings", {{"input", "the sea"}})->whole().status, 503);
}

TEST(Embeddings, GgufFilesAnswerAlike) {
  Server server("tiny_bert.gguf");
  const json& text = golden()["texts"][3];
  const json reply = server.post("/v1/embeddings", {{"input", text["text"]}})->json();
  EXPECT_EQ(reply["usage"]["prompt_tokens"], text["ids"].size());
  expect_near(reply["data"][0]["embedding"], text["embedding"], 0.03);
}

TEST(Base64, PadsTheEnd) {
  const auto* bytes = reinterpret_cast<const uint8_t*>("foob");
  for (const auto& [size, want] :
       {std::pair{0, ""}, {1, "Zg=="}, {2, "Zm8="}, {3, "Zm9v"}, {4, "Zm9vYg=="}}) {
    std::string out;
    append_base64(out, bytes, static_cast<size_t>(size));
    EXPECT_EQ(out, want);
  }
}

}  // namespace
}  // namespace wok
