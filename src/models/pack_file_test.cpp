// Pack files: kept and mapped at the next load; one that is damaged, foreign or half-written is
// never used, and the warning says why; a folder that cannot be written costs a warning.
#include "models/pack_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/support/tiny_model.h"

namespace wok {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kBytes = 10000;  // several pages, and not a whole number of them

PackId id_of(const std::string& model, uint64_t bytes = kBytes) {
  return {.model = model, .isa = "avx2", .panel_rows = 8, .layout_version = 7, .bytes = bytes};
}

uint8_t weight(size_t i) {
  return static_cast<uint8_t>(i * 7 + i / 251);
}

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

  Result<PackMemory> open(const std::string& dir, const PackId& id, PackMode mode, int& fills) {
    ComputePool pool(2);
    return PackMemory::open(dir, id, mode, pool, [&](uint8_t* to) {
      ++fills;
      for (size_t i = 0; i < id.bytes; ++i) {
        EXPECT_EQ(to[i], 0) << "memory to pack into must be zeroed";
        to[i] = weight(i);
      }
    });
  }
  // Opens the pack; true when it had to be filled. The contents must be right either way.
  bool filled(const std::string& dir, const PackId& id, PackMode mode = PackMode::kUse) {
    int fills = 0;
    const auto memory = open(dir, id, mode, fills);
    EXPECT_TRUE(memory.ok()) << (memory.ok() ? "" : memory.error().message);
    if (!memory.ok()) return false;
    EXPECT_EQ(memory->from_file(), fills == 0);
    EXPECT_EQ(memory->bytes(), id.bytes);
    size_t wrong = 0;
    for (size_t i = 0; i < id.bytes; ++i) wrong += memory->data()[i] != weight(i);
    EXPECT_EQ(wrong, 0u) << "packed bytes are not what was filled in";
    not_kept_ = memory->not_kept();
    EXPECT_EQ(memory->path().empty(), dir.empty() || !not_kept_.empty());
    return fills > 0;
  }
  bool filled() { return filled(dir_, id_of("key")); }
  std::string verify(const PackId& id) {
    int fills = 0;
    const auto memory = open(dir_, id, PackMode::kVerify, fills);
    EXPECT_EQ(fills, 0);
    return memory.ok() ? "good" : memory.error().message;
  }
  std::string take_warnings() {
    std::string text = warnings_.str();
    warnings_.str("");
    return text;
  }
  std::string pack(const std::string& model = "key") const {
    return dir_ + "/" + pack_file_name(id_of(model));
  }
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
  // Packed again with a warning that names the file and the reason, and used from then on.
  void expect_rebuilt(const std::string& reason) {
    take_warnings();
    EXPECT_TRUE(filled()) << reason;
    EXPECT_THAT(take_warnings(), AllOf(HasSubstr(pack()), HasSubstr(reason)));
    EXPECT_FALSE(filled()) << "the new pack was not kept: " << reason;
    EXPECT_THAT(take_warnings(), IsEmpty());
  }

  std::string dir_;
  std::string not_kept_;
  std::ostringstream warnings_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(PackFile, IsKeptAndMappedAtTheNextOpening) {
  const std::string deep = dir_ + "/packs/deep";
  EXPECT_TRUE(filled(deep, id_of("key")));
  EXPECT_FALSE(filled(deep, id_of("key")));
  EXPECT_FALSE(filled(deep, id_of("key")));
  EXPECT_TRUE(filled(deep, id_of("another")));
  EXPECT_TRUE(filled(deep, id_of("small", 1)));
  EXPECT_FALSE(filled(deep, id_of("small", 1)));
  EXPECT_THAT(warnings_.str(), IsEmpty());
}

TEST_F(PackFile, WithoutAFolderNothingIsKept) {
  EXPECT_TRUE(filled("", id_of("key")));
  EXPECT_TRUE(filled("", id_of("key")));
}

TEST_F(PackFile, IsMadeAgainWhenAskedTo) {
  EXPECT_TRUE(filled());
  EXPECT_TRUE(filled(dir_, id_of("key"), PackMode::kRebuild));
  EXPECT_FALSE(filled());
}

TEST_F(PackFile, OfAnotherLengthIsPackedAgain) {
  ASSERT_TRUE(filled());
  const auto whole = fs::file_size(pack());
  for (const size_t size : {size_t{0}, size_t{1}, sizeof(PackHeader) - 1}) {
    fs::resize_file(pack(), size);
    expect_rebuilt("fewer than a header");
  }
  for (const size_t size : {sizeof(PackHeader), kPackHeaderBytes, whole - 1, whole + 1}) {
    fs::resize_file(pack(), size);
    expect_rebuilt(fmt::format("it has {} bytes, expected {}", size, whole));
    EXPECT_EQ(fs::file_size(pack()), whole);
  }
  EXPECT_TRUE(filled(dir_, id_of("key", kBytes + 1))) << "the pack of a smaller model was used";
}

TEST_F(PackFile, OfOtherWeightsOrKernelsUnderThisNameIsPackedAgain) {
  PackId kernels = id_of("key"), rows = id_of("key"), layout = id_of("key");
  kernels.isa = "avx512";
  rows.panel_rows = 16;
  layout.layout_version = 6;
  const std::vector<std::pair<PackId, std::string>> others = {
      {id_of("theirs"), "another model's weights"},
      {kernels, "it is for avx512 kernels with panels of 8 rows, expected avx2 with 8"},
      {rows, "it is for avx2 kernels with panels of 16 rows, expected avx2 with 8"},
      {layout, "laid out as version 6, expected 7"}};
  for (const auto& [other, reason] : others) {
    ASSERT_TRUE(filled(dir_, other, PackMode::kRebuild));
    if (pack_file_name(other) != pack_file_name(id_of("key"))) {
      fs::rename(dir_ + "/" + pack_file_name(other), pack());
    }
    expect_rebuilt(reason);
  }
}

TEST_F(PackFile, OfAnotherFormatIsPackedAgain) {
  ASSERT_TRUE(filled());
  overwrite(pack(), offsetof(PackHeader, format_version), "\x01");
  expect_rebuilt("its format is version 1, expected 2");
}

TEST_F(PackFile, ADamagedHeaderIsFound) {
  ASSERT_TRUE(filled());
  overwrite(pack(), 0, "X");
  expect_rebuilt("it is no pack file");
  for (size_t at = 12; at < sizeof(PackHeader); at += 5) {
    overwrite(pack(), at, "\x55");
    expect_rebuilt("its header is damaged");
  }
  std::ofstream(pack(), std::ios::binary) << std::string(kPackHeaderBytes + kBytes, 'x');
  expect_rebuilt("it is no pack file");
}

TEST_F(PackFile, LostOrOverwrittenWeightsAreFoundAtOpening) {
  ASSERT_TRUE(filled());
  for (const size_t at : {size_t{0}, kBytes / 2, kBytes - kSampleBytes}) {
    overwrite(pack(), kPackHeaderBytes + at, std::string(kSampleBytes, '\0'));
    expect_rebuilt("not what was written");
  }
}

// What the samples of an opening may miss.
TEST_F(PackFile, VerifyingFindsASingleWrongBit) {
  const PackId id = id_of("big", 3 * kSumChunkBytes + 1234);
  const std::string path = dir_ + "/" + pack_file_name(id);
  EXPECT_THAT(verify(id), HasSubstr("there is no '" + path));
  ASSERT_TRUE(filled(dir_, id));
  EXPECT_EQ(verify(id), "good");
  const std::vector<size_t> places = {0, kSumChunkBytes - 1, 2 * kSumChunkBytes + 4321,
                                      id.bytes - 1};
  for (const size_t at : places) {
    const auto was = static_cast<char>(weight(at));
    overwrite(path, kPackHeaderBytes + at, std::string(1, static_cast<char>(was ^ 1)));
    EXPECT_THAT(verify(id), AllOf(HasSubstr(path), HasSubstr("not what was written"))) << at;
    overwrite(path, kPackHeaderBytes + at, std::string(1, was));
    EXPECT_EQ(verify(id), "good") << at;
  }
}

// Reads from the disk anyway, so all of it is compared, not the samples alone.
TEST_F(PackFile, AColdFileIsVerifiedAtOpening) {
  const PackId id = id_of("cold", 3 * kSumChunkBytes);
  ASSERT_TRUE(filled(dir_, id));
  const std::string path = dir_ + "/" + pack_file_name(id);
  const size_t at = kSumChunkBytes + 777;  // in no sample
  overwrite(path, kPackHeaderBytes + at, std::string(1, static_cast<char>(weight(at) ^ 1)));
  const int fd = ::open(path.c_str(), O_RDONLY);
  ASSERT_EQ(::fsync(fd), 0);
  ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  void* data = ::mmap(nullptr, kPackHeaderBytes, PROT_READ, MAP_SHARED, fd, 0);
  unsigned char resident = 1;
  ::mincore(data, 1, &resident);
  ::munmap(data, kPackHeaderBytes);
  ::close(fd);
  if ((resident & 1) != 0) GTEST_SKIP() << "this file system keeps its pages in memory";
  EXPECT_TRUE(filled(dir_, id));
  EXPECT_THAT(warnings_.str(), HasSubstr("not what was written (checksum)"));
}

TEST_F(PackFile, WhatKilledStartsLeftIsRemovedAndWhatLivingOnesWriteIsNot) {
  const std::string dead = dir_ + "/key-avx2-8.pack.1-0.part",
                    alive = dir_ + "/other.pack.2-0.part";
  for (const std::string& path : {dead, alive}) std::ofstream(path) << "half of a pack";
  const int fd = ::open(alive.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_TRUE(filled());
  EXPECT_THAT(files(), ElementsAre("key-avx2-8.pack", "other.pack.2-0.part"));
  ::close(fd);
  EXPECT_TRUE(filled(dir_, id_of("key"), PackMode::kRebuild));
  EXPECT_THAT(files(), ElementsAre("key-avx2-8.pack"));
  EXPECT_THAT(warnings_.str(), IsEmpty());
}

TEST_F(PackFile, ManyThreadsAndProcessesAtOnceAllGetTheRightWeights) {
  for (int round = 0; round < 5; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 3; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        filled();
        ::_exit(HasFailure() ? 1 : 0);
      }
      children.push_back(child);
    }
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        int fills = 0;
        const auto memory = open(dir_, id_of("key"), PackMode::kUse, fills);
        const bool good = memory.ok() && memory->not_kept().empty();
        for (size_t at = 0; good && at < kBytes; ++at) wrong += memory->data()[at] != weight(at);
        wrong += good ? 0 : 1;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const pid_t child : children) {
      int status = -1;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_THAT(files(), ElementsAre("key-avx2-8.pack"));
    EXPECT_FALSE(filled());
    fs::remove(pack());
  }
  EXPECT_THAT(warnings_.str(), IsEmpty());
}

TEST_F(PackFile, AFileWhereTheFolderShouldBeCostsAReason) {
  const std::string file = dir_ + "/file";
  std::ofstream(file) << "not a folder";
  for (const std::string& folder : {file + "/packs", file}) {
    EXPECT_TRUE(filled(folder, id_of("key"))) << folder;
    EXPECT_THAT(not_kept_, AllOf(HasSubstr(folder), HasSubstr("Not a directory"),
                                 HasSubstr("remove what is in the way")));
  }
}

TEST_F(PackFile, AFolderThatTakesNoFilesCostsAReason) {
  EXPECT_TRUE(filled("/proc/self", id_of("key")));  // root may not write there either
  EXPECT_THAT(not_kept_,
              AllOf(HasSubstr("cannot write '/proc/self/key"), HasSubstr("--cache-dir")));
}

TEST_F(PackFile, ADiskThatIsTooSmallCostsAReasonAndLeavesNothing) {
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // as main does
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 6000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_TRUE(filled());
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(not_kept_,
              AllOf(HasSubstr(pack()), HasSubstr("File too large"), HasSubstr("ulimit -f")));
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_TRUE(filled());
  EXPECT_FALSE(filled());
}

TEST_F(PackFile, ANameThatIsTakenByAFolderCostsAReason) {
  fs::create_directories(pack() + "/inside");
  EXPECT_TRUE(filled());
  EXPECT_THAT(warnings_.str(), HasSubstr("it is no regular file"));
  EXPECT_THAT(not_kept_, HasSubstr("Is a directory"));
  EXPECT_THAT(files(), ElementsAre("key-avx2-8.pack")) << "a part file was left behind";
}

TEST_F(PackFile, ANameThatIsTooLongCostsAReason) {
  EXPECT_TRUE(filled(dir_, id_of(std::string(250, 'k'))));
  EXPECT_THAT(not_kept_, HasSubstr("File name too long"));
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
    auto file = parse_gguf(of, "tiny.gguf");
    auto model = Model::load(std::make_shared<const ModelFile>(std::move(file).value()),
                             *isa->kernels, {.pack_dir = dir_, .pool = &pool});
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
  // Of a fused tensor each matrix packs its own rows.
  const auto fused = test::TinyWriter(test::tiny_shape("phi3"), 1).bytes();
  const auto whole = load(fused);
  EXPECT_EQ(load(fused), whole);
  EXPECT_EQ(files().size(), 3u);
  for (const std::string& name : files()) fs::resize_file(dir_ + "/" + name, 5000);
  EXPECT_EQ(load(bytes), first);
  EXPECT_EQ(load(bytes), first);
}

}  // namespace
}  // namespace wok
