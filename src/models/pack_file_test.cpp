// Pack files: kept and mapped at the next load; one that is damaged, foreign or half-written is
// never used; a folder that cannot be written costs a warning.
#include "models/pack_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/tiny_model.h"

namespace wok {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kBytes = 10000;

class PackFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "wok_packs_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
    before_ = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(warnings_)));
  }
  void TearDown() override {
    spdlog::set_default_logger(before_);
    fs::remove_all(dir_);
  }

  // Opens the pack; true when it had to be filled. The contents must be right either way.
  bool filled(const std::string& dir, const std::string& key = "key", size_t bytes = kBytes) {
    int fills = 0;
    auto memory = PackMemory::open(dir, key, bytes, [&](uint8_t* to) {
      ++fills;
      for (size_t i = 0; i < bytes; ++i) {
        EXPECT_EQ(to[i], 0) << "memory to pack into must be zeroed";
        to[i] = static_cast<uint8_t>(i * 7);
      }
    });
    EXPECT_TRUE(memory.ok()) << (memory.ok() ? "" : memory.error().message);
    if (!memory.ok()) return false;
    EXPECT_EQ(memory->from_file(), fills == 0);
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; ++i) wrong += memory->data()[i] != static_cast<uint8_t>(i * 7);
    EXPECT_EQ(wrong, 0u) << "packed bytes are not what was filled in";
    return fills > 0;
  }
  std::string pack(const std::string& key = "key") const { return dir_ + "/" + key + ".pack"; }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  static void overwrite(const std::string& path, size_t at, const std::string& text) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file << text;
    ASSERT_TRUE(file.good());
  }

  std::string dir_;
  std::ostringstream warnings_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(PackFile, IsKeptAndMappedAtTheNextOpening) {
  EXPECT_TRUE(filled(dir_ + "/packs/deep"));
  EXPECT_FALSE(filled(dir_ + "/packs/deep"));
  EXPECT_FALSE(filled(dir_ + "/packs/deep"));
  EXPECT_TRUE(filled(dir_ + "/packs/deep", "another key"));
  EXPECT_THAT(warnings_.str(), IsEmpty());
}

TEST_F(PackFile, WithoutAFolderNothingIsKept) {
  EXPECT_TRUE(filled(""));
  EXPECT_TRUE(filled(""));
}

TEST_F(PackFile, OfAnotherSizeIsPackedAgain) {
  ASSERT_TRUE(filled(dir_));
  const auto whole = fs::file_size(pack());
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, whole - 1, whole + 1}) {
    fs::resize_file(pack(), size);
    EXPECT_TRUE(filled(dir_)) << size;
    EXPECT_EQ(fs::file_size(pack()), whole);
    EXPECT_FALSE(filled(dir_)) << "the new pack was not kept";
  }
  EXPECT_TRUE(filled(dir_, "key", kBytes + 1)) << "the pack of a smaller model was used";
}

TEST_F(PackFile, OfAnotherModelUnderThisNameIsPackedAgain) {
  ASSERT_TRUE(filled(dir_, "theirs"));
  fs::rename(pack("theirs"), pack());
  EXPECT_TRUE(filled(dir_));
  EXPECT_FALSE(filled(dir_));
}

TEST_F(PackFile, GarbageIsPackedAgain) {
  ASSERT_TRUE(filled(dir_));
  const auto whole = fs::file_size(pack());
  std::ofstream(pack(), std::ios::binary) << std::string(whole, 'x');
  EXPECT_TRUE(filled(dir_));
  for (const size_t at : {0u, 10u, 16u, 23u, 24u, 27u}) {  // magic, size, key
    overwrite(pack(), at, "\x55");
    EXPECT_TRUE(filled(dir_)) << at;
    EXPECT_FALSE(filled(dir_)) << at;
  }
}

TEST_F(PackFile, HalfWrittenOnesAreNotUsed) {
  for (const int pid : {1, static_cast<int>(::getpid())}) {
    std::ofstream(pack() + "." + std::to_string(pid) + ".part") << "half of a pack";
  }
  EXPECT_TRUE(filled(dir_));
  EXPECT_FALSE(filled(dir_));
  EXPECT_THAT(files(), testing::ElementsAre("key.pack", "key.pack.1.part"));
  EXPECT_THAT(warnings_.str(), IsEmpty());
}

TEST_F(PackFile, WhatADeadStartLeftIsRemoved) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);  // a process id that is free again
  std::ofstream(pack() + "." + std::to_string(child) + ".part") << "half of a pack";
  EXPECT_TRUE(filled(dir_));
  EXPECT_THAT(files(), testing::ElementsAre("key.pack"));
}

TEST_F(PackFile, AFolderThatCannotBeWrittenCostsAWarning) {
  const std::string file = dir_ + "/file";
  std::ofstream(file) << "not a folder";
  EXPECT_TRUE(filled(file + "/packs"));
  EXPECT_THAT(warnings_.str(), AllOf(HasSubstr("packed weights are not kept"),
                                     HasSubstr(file + "/packs"), HasSubstr("Not a directory")));
}

TEST_F(PackFile, ANameThatIsTakenByAFolderCostsAWarning) {
  fs::create_directories(pack() + "/inside");
  EXPECT_TRUE(filled(dir_));
  EXPECT_THAT(warnings_.str(), HasSubstr("Is a directory"));
  EXPECT_THAT(files(), testing::ElementsAre("key.pack")) << "a part file was left behind";
}

TEST_F(PackFile, ANameThatIsTooLongCostsAWarning) {
  EXPECT_TRUE(filled(dir_, std::string(300, 'k')));
  EXPECT_THAT(warnings_.str(), HasSubstr("File name too long"));
}

// The whole way through Model::load.
std::vector<float> logits_of(const Model& model, ComputePool& pool) {
  const std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6}, owner(8, 0), rows = {7};
  std::vector<int32_t> positions(8), pages = {0, 1};
  for (int32_t i = 0; i < 8; ++i) positions[i] = i;
  const std::vector<SequenceSpan> spans = {{0, 8, 8, pages.data()}};
  Workspace work(model.config(), model.weights(), 8, 1, 1, pool.threads());
  const PageMemory memory = std::move(PageMemory::create(model.kv_shape(kKvFormat_f16), 2).value());
  model.forward({tokens, positions, spans, owner, rows}, memory, pool, work);
  return {work.logits.begin(), work.logits.begin() + model.config().vocab};
}

TEST_F(PackFile, ALoadedModelSaysTheSameFromItsPack) {
  const auto isa = choose_isa("");
  ASSERT_TRUE(isa.ok());
  if (isa->kernels->panel_rows == 0) GTEST_SKIP() << "the reference kernels pack nothing";
  const auto bytes = test::TinyWriter({}, 1).bytes(), other = test::TinyWriter({}, 2).bytes();
  ComputePool pool(2);
  const auto load = [&](const std::vector<uint8_t>& of) {
    auto file = GgufFile::parse(of, "tiny.gguf");
    auto model = Model::load(std::make_shared<const GgufFile>(std::move(file).value()),
                             *isa->kernels, {dir_, &pool});
    EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
    return logits_of(*model.value(), pool);
  };
  const auto inode = [&] {
    struct stat info {};
    EXPECT_EQ(::stat((dir_ + "/" + files()[0]).c_str(), &info), 0);
    return info.st_ino;
  };
  const auto first = load(bytes);
  ASSERT_EQ(files().size(), 1u);
  const auto packed = inode();
  EXPECT_EQ(load(bytes), first);
  EXPECT_EQ(inode(), packed) << "packed a second time";
  EXPECT_NE(load(other), first) << "the pack of another model was used";
  EXPECT_EQ(files().size(), 2u);
  for (const std::string& name : files()) fs::resize_file(dir_ + "/" + name, 5000);
  EXPECT_EQ(load(bytes), first);
}

}  // namespace
}  // namespace wok
