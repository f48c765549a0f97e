#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/testing.h"

namespace wok::store {
namespace {

using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  void add(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(store_.prepare().ok());
    const std::string hex = testing::sha256_of(bytes);
    testing::write_file(store_.blob_path(hex), bytes);
    testing::write_file(store_.manifest_path(name), to_json({.name = name,
                                                             .sha256 = hex,
                                                             .file_bytes = bytes.size(),
                                                             .files = {},
                                                             .source = "test",
                                                             .license = "MIT",
                                                             .pulled_at = "now"}));
  }

  TempFolder folder_ = testing::temp_folder();
  Store store_{folder_.path() + "/cache/wok"};
};

TEST_F(StoreTest, AFolderThatIsNotThereIsAnEmptyStore) {
  ASSERT_TRUE(store_.list().ok());
  EXPECT_TRUE(store_.list()->empty());
  EXPECT_FALSE(testing::exists(store_.folder()));
}

TEST_F(StoreTest, ListsByName) {
  add("zeta", "1");
  add("alpha:1b", "22");
  testing::write_file(store_.folder() + "/models/README", "not a manifest");
  const auto models = store_.list();
  ASSERT_TRUE(models.ok());
  ASSERT_EQ(models->size(), 2U);
  EXPECT_EQ((*models)[0].manifest.name, "alpha:1b");
  EXPECT_EQ((*models)[0].manifest.file_bytes, 2U);
  EXPECT_EQ((*models)[1].problem, "");
}

TEST_F(StoreTest, ADamagedManifestIsListedWithItsProblem) {
  ASSERT_TRUE(store_.prepare().ok());
  const std::string hex(64, 'a');
  const std::vector<std::string> texts = {
      "{",
      "[]",
      "{\"format\":2}",
      "{\"format\":1,\"name\":\"m\",\"sha256\":\"../../etc/passwd\",\"bytes\":1}",
      "{\"format\":1,\"name\":\"m\",\"sha256\":\"" + hex + "\",\"bytes\":-1}",
      "{\"format\":1,\"name\":\"other\",\"sha256\":\"" + hex + "\",\"bytes\":1}",
      "{\"format\":1,\"name\":\"m\",\"sha256\":\"" + hex + "\",\"bytes\":1}"};
  for (const std::string& text : texts) {
    testing::write_file(store_.manifest_path("m"), text);
    const auto models = store_.list();
    ASSERT_TRUE(models.ok());
    ASSERT_EQ(models->size(), 1U) << text;
    EXPECT_NE((*models)[0].problem, "") << text;
    EXPECT_EQ(store_.resolve("m").error().kind, ErrorKind::kIo) << text;
  }
}

TEST_F(StoreTest, ACutBlobIsNotServed) {
  add("m", "12345");
  testing::write_file(store_.find("m")->path, "123");
  EXPECT_THAT(store_.resolve("m").error().message, HasSubstr("has 3 bytes, expected 5"));
}

TEST_F(StoreTest, ResolvesNamesAliasesAndPaths) {
  add("gemma3:270m", "g");
  EXPECT_EQ(store_.resolve("gemma3:270m")->id, "gemma3:270m");
  EXPECT_EQ(store_.resolve("gemma3")->id, "gemma3:270m");
  EXPECT_EQ(testing::read_file(store_.resolve("gemma3")->path), "g");

  const std::string path = folder_.path() + "/my model.gguf";
  testing::write_file(path, "x");
  EXPECT_EQ(store_.resolve(path)->path, path);
  EXPECT_EQ(store_.resolve(path)->id, "my model");
}

TEST_F(StoreTest, SaysWhatIsThereAndHowToPull) {
  add("mine", "1");
  const Error known = store_.resolve("smollm2").error();
  EXPECT_EQ(known.kind, ErrorKind::kNotFound);
  EXPECT_THAT(known.message, HasSubstr("wok pull smollm2"));
  const Error unknown = store_.resolve("llama9").error();
  EXPECT_EQ(unknown.kind, ErrorKind::kNotFound);
  EXPECT_THAT(unknown.message, HasSubstr("mine"));
  EXPECT_THAT(unknown.message, HasSubstr("gemma3:270m"));
}

TEST_F(StoreTest, SaysWhichFilesLieBesideAMissingOne) {
  testing::write_file(folder_.path() + "/there.gguf", "x");
  EXPECT_THAT(store_.resolve(folder_.path() + "/ther.gguf").error().message,
              HasSubstr("there.gguf"));
  EXPECT_THAT(store_.resolve(folder_.path() + "/").error().message, HasSubstr("is a folder"));
}

TEST_F(StoreTest, NamesCannotLeaveTheStore) {
  add("m", "1");
  testing::write_file(folder_.path() + "/cache/secret.json", "{}");
  for (const char* name : {"..", ".", "", "m:..", "M", "m\n"}) {
    EXPECT_EQ(store_.find(name).error().kind, ErrorKind::kInvalid) << name;
    EXPECT_EQ(store_.remove(name).error().kind, ErrorKind::kInvalid) << name;
  }
  // With a slash it is a path for resolve(), and never one for the others.
  EXPECT_EQ(store_.remove("../../secret").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(store_.find("../../secret").error().kind, ErrorKind::kInvalid);
  EXPECT_TRUE(testing::exists(folder_.path() + "/cache/secret.json"));
}

TEST_F(StoreTest, RemoveKeepsABlobThatAnotherNameMeans) {
  add("one", "same");
  add("two", "same");
  const std::string blob = store_.find("one")->path;
  const std::string pack = store_.packs_folder() + "/" + testing::sha256_of("same") + ".avx2.pack";
  testing::write_file(pack, "p");
  ASSERT_TRUE(store_.remove("one").ok());
  EXPECT_TRUE(testing::exists(blob));
  EXPECT_TRUE(testing::exists(pack));
  EXPECT_TRUE(store_.resolve("two").ok());
  ASSERT_TRUE(store_.remove("two").ok());
  EXPECT_FALSE(testing::exists(blob));
  EXPECT_FALSE(testing::exists(pack));
  EXPECT_EQ(store_.remove("two").error().kind, ErrorKind::kNotFound);
}

TEST_F(StoreTest, RemoveDoesNotDisturbAPull) {
  add("m", "1");
  const auto lock = store_.try_lock();
  ASSERT_TRUE(lock.ok() && lock->held());
  EXPECT_EQ(store_.remove("m").error().kind, ErrorKind::kBusy);
  EXPECT_TRUE(store_.resolve("m").ok());
}

TEST_F(StoreTest, ADamagedManifestCanBeRemoved) {
  add("m", "1");
  testing::write_file(store_.manifest_path("m"), "{");
  ASSERT_TRUE(store_.remove("m").ok());
  EXPECT_TRUE(store_.list()->empty());
}

TEST(CacheDir, FollowsOverrideThenXdgThenHome) {
  EXPECT_EQ(*default_cache_dir("/a", "/x", "/h"), "/a");
  EXPECT_EQ(*default_cache_dir("", "/x", "/h"), "/x/wok");
  EXPECT_EQ(*default_cache_dir("", "", "/h"), "/h/.cache/wok");
  EXPECT_EQ(*default_cache_dir("", "relative", "/h"), "/h/.cache/wok");
  EXPECT_FALSE(default_cache_dir("relative", "", "/h").ok());
  EXPECT_FALSE(default_cache_dir("", "", "").ok());
}

TEST(KnownModels, AreWellFormedAndFoundByAlias) {
  for (const KnownModel& model : known_models()) {
    EXPECT_EQ(find_known_model(model.name), &model);
    for (const std::string& alias : model.aliases) EXPECT_EQ(find_known_model(alias), &model);
    EXPECT_EQ(model.sha256.size(), 64U);
    EXPECT_GT(model.file_bytes, 0U);
    EXPECT_FALSE(model.parts.empty());
  }
  EXPECT_NE(find_known_model(kDefaultModel), nullptr);
  EXPECT_EQ(find_known_model("gemma3")->name, "gemma3:270m");
  EXPECT_EQ(find_known_model("nothing"), nullptr);
}

}  // namespace
}  // namespace wok::store
