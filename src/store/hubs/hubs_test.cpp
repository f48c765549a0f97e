// Names of hubs' models, and which files of a repository are one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/hubs/choose.h"
#include "store/hubs/hub.h"
#include "store/hubs/words.h"
#include "store/names.h"

namespace wok::store {
namespace {

using ::testing::HasSubstr;

std::vector<HubFile> listing(const std::vector<std::string>& paths) {
  std::vector<HubFile> files;
  for (const std::string& path : paths) {
    HubFile file;
    file.path = path;
    file.bytes = 1;
    files.push_back(file);
  }
  return files;
}

std::vector<std::string> chosen(const std::vector<std::string>& paths, const std::string& variant) {
  const Result<Choice> choice = choose_files(listing(paths), variant);
  if (!choice.ok()) return {"error: " + choice.error().message};
  std::vector<std::string> names;
  for (const HubFile& file : choice->files) names.push_back(file.path);
  return names;
}

TEST(HubRefs, AreTakenApartAndWrittenInOneForm) {
  const auto ref = parse_hub_ref("hf:Qwen/Qwen3-0.6B-GGUF@refs/pr/1:sub/x-Q8_0.gguf");
  ASSERT_TRUE(ref.ok());
  EXPECT_EQ(ref->hub->prefix, "hf");
  EXPECT_EQ(ref->repo, "Qwen/Qwen3-0.6B-GGUF");
  EXPECT_EQ(ref->revision, "refs/pr/1");
  EXPECT_EQ(ref->variant, "sub/x-Q8_0.gguf");
  EXPECT_EQ(ref->name(), "hf:Qwen/Qwen3-0.6B-GGUF@refs/pr/1:sub/x-Q8_0.gguf");
  EXPECT_EQ(parse_hub_ref("ms:org/name")->name(), "ms:org/name");
  EXPECT_EQ(parse_hub_ref("qwen3:32b-q4_K_M")->repo, "library/qwen3");
  EXPECT_EQ(parse_hub_ref("ollama:qwen3:8b")->name(), "qwen3:8b");
  EXPECT_EQ(parse_hub_ref("ollama:qwen3")->name(), "qwen3:latest");
  EXPECT_EQ(parse_hub_ref("ollama:me/mine:1b")->name(), "ollama:me/mine:1b");
  // Not to be taken for the model of wok's own list.
  EXPECT_EQ(parse_hub_ref("ollama:gemma3:270m")->name(), "ollama:gemma3:270m");
  for (const char* name : {"hf:a/b:Q4_K_M", "qwen3:32b-q4_K_M", "ollama:me/mine:1b"}) {
    EXPECT_TRUE(valid_name(name)) << name;
    EXPECT_EQ(name_of_file(file_name_of(name)), name);
    EXPECT_EQ(file_name_of(name).find('/'), std::string::npos);
    EXPECT_FALSE(looks_like_path(name)) << name;
  }
  EXPECT_FALSE(looks_like_path("hf:a/b:x.gguf"));
  EXPECT_FALSE(valid_name("ollama:qwen3:8b"));  // the store has it as qwen3:8b
  EXPECT_EQ(*canonical_name("ollama:qwen3:8b"), "qwen3:8b");
}

TEST(HubRefs, CannotNameAnythingElse) {
  for (const std::string name : {"hf:",
                                 "hf:../x",
                                 "hf:a/..",
                                 "hf:a/../b",
                                 "hf:a/b/c",
                                 "hf:/etc/passwd",
                                 "hf:a/b@",
                                 "hf:a/b:",
                                 "hf:a/b@../x",
                                 "hf:a/b:../x.gguf",
                                 "hf:a/b:/x.gguf",
                                 "hf:a b/c",
                                 "hf:a/b?x",
                                 "hf:a/b%2f",
                                 "hf:a/b:x@main",
                                 "ms:name",
                                 "ollama:",
                                 "ollama:../x",
                                 "ollama:a/b/c:d",
                                 "ollama:a:b:c",
                                 "a:../b",
                                 "x/y:z",
                                 "noprefix",
                                 "hf:a/b\n"}) {
    EXPECT_EQ(parse_hub_ref(name).error().kind, ErrorKind::kInvalid) << name;
    EXPECT_FALSE(has_hub_prefix(name) && valid_name(name)) << name;
  }
  EXPECT_FALSE(parse_hub_ref("hf:a/" + std::string(300, 'b')).ok());
}

TEST(Endpoints, AreAddresses) {
  EXPECT_EQ(*endpoint_of("X", "", "https://hub"), "https://hub");
  EXPECT_EQ(*endpoint_of("X", "http://mirror:80/hf//", "https://hub"), "http://mirror:80/hf");
  EXPECT_EQ(*endpoint_of("X", "mirror", "https://hub"), "https://mirror");
  for (const char* bad :
       {"ftp://x", "file:///etc/passwd", "https://", "https://a b", "http://u@h"}) {
    EXPECT_FALSE(endpoint_of("X", bad, "https://hub").ok()) << bad;
  }
  EXPECT_FALSE(bearer("HF_TOKEN", "a\r\nHost: x").ok());
}

TEST(ChooseFiles, TakesTheUsualQuantOrTheNearest) {
  const std::vector<std::string> all = {"README.md", "m-Q2_K.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf",
                                        "mmproj-m-Q4_K_M.gguf"};
  EXPECT_EQ(chosen(all, ""), std::vector<std::string>{"m-Q4_K_M.gguf"});
  EXPECT_THAT(choose_files(listing(all), "")->note,
              HasSubstr("took m-Q4_K_M of: m-Q2_K, m-Q4_K_M"));
  EXPECT_EQ(chosen({"m-Q2_K.gguf", "m.q8_0.gguf"}, ""), std::vector<std::string>{"m.q8_0.gguf"});
  EXPECT_EQ(chosen({"only.gguf"}, ""), std::vector<std::string>{"only.gguf"});
  EXPECT_THAT(chosen({"a.gguf", "b.gguf"}, "")[0], HasSubstr("There are: a, b"));
}

TEST(ChooseFiles, TakesTheQuantOrFileThatIsAskedFor) {
  const std::vector<std::string> all = {"m-Q4_K_M.gguf", "m-UD-Q4_K_M.gguf", "m-Q4_K_S.gguf",
                                        "deep/n-Q6_K.gguf"};
  EXPECT_EQ(chosen(all, "q4_k_m"), std::vector<std::string>{"m-Q4_K_M.gguf"});
  EXPECT_EQ(chosen(all, "UD-Q4_K_M"), std::vector<std::string>{"m-UD-Q4_K_M.gguf"});
  EXPECT_EQ(chosen(all, "n-Q6_K.gguf"), std::vector<std::string>{"deep/n-Q6_K.gguf"});
  EXPECT_THAT(chosen(all, "Q4_K")[0], HasSubstr("There are: n-Q6_K, m-Q4_K_M"));
  EXPECT_THAT(chosen(all, "none.gguf")[0], HasSubstr("there is no none.gguf"));
  EXPECT_THAT(chosen({"a-Q8_0.gguf", "b-Q8_0.gguf"}, "Q8_0")[0], HasSubstr("give one file's name"));
}

TEST(ChooseFiles, TakesAllPartsInOrder) {
  const std::vector<std::string> all = {"Q8_0/m-Q8_0-00002-of-00002.gguf",
                                        "Q8_0/m-Q8_0-00001-of-00002.gguf", "m-Q4_0.gguf"};
  const std::vector<std::string> parts = {all[1], all[0]};
  EXPECT_EQ(chosen(all, "Q8_0"), parts);
  EXPECT_EQ(chosen(all, "m-Q8_0-00002-of-00002.gguf"), parts);
  EXPECT_THAT(chosen({"m-Q8_0-00001-of-00003.gguf", "m-Q8_0-00003-of-00003.gguf"}, "Q8_0")[0],
              HasSubstr("part 2 of 3"));
}

TEST(ChooseFiles, TakesAFolderOfSafetensors) {
  const std::vector<std::string> folder = {"config.json",     "model.safetensors",
                                           "tokenizer.json",  "pytorch_model.bin",
                                           "onnx/model.onnx", "README.md"};
  const std::vector<std::string> want = {"config.json", "tokenizer.json", "model.safetensors"};
  EXPECT_EQ(chosen(folder, ""), want);
  std::vector<std::string> both = folder;
  both.push_back("m-Q4_0.gguf");
  EXPECT_EQ(chosen(both, ""), std::vector<std::string>{"m-Q4_0.gguf"});
  EXPECT_EQ(chosen(both, "safetensors"), want);
  EXPECT_THAT(chosen({"config.json", "pytorch_model.bin"}, "")[0], HasSubstr("pytorch_model.bin"));
  EXPECT_THAT(chosen({"model.safetensors"}, "")[0], HasSubstr("no config.json"));
  EXPECT_THAT(chosen(folder, "Q4_K_M")[0], HasSubstr("no GGUF file"));
}

TEST(ChooseFiles, RefusesNamesThatAreNone) {
  for (const char* path : {"../x.gguf", "/etc/x.gguf", "a/../../x.gguf", "a//x.gguf", "a/./x.gguf",
                           "..", "a\\x.gguf", "a\x1b[2J.gguf", ""}) {
    EXPECT_THAT(chosen({"m-Q4_K_M.gguf", path}, "")[0], HasSubstr("whose name is none")) << path;
  }
}

TEST(ChooseFiles, FollowsTheIndex) {
  auto files = listing({"model-1.safetensors", "model-2.safetensors", "old.safetensors"});
  ASSERT_TRUE(keep_indexed_shards(R"({"weight_map":{"a":"model-1.safetensors",
      "b":"model-2.safetensors"}})",
                                  files)
                  .ok());
  EXPECT_EQ(files.size(), 2U);
  for (const char* text : {"{", "[]", "{}", R"({"weight_map":{}})", R"({"weight_map":{"a":7}})",
                           R"({"weight_map":{"a":"../x.safetensors"}})",
                           R"({"weight_map":{"a":"model-3.safetensors"}})"}) {
    EXPECT_EQ(keep_indexed_shards(text, files).error().kind, ErrorKind::kInvalid) << text;
  }
}

}  // namespace
}  // namespace wok::store
