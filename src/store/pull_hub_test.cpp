// Pulls from an imitation of each hub, with what can go wrong on the way.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/pull.h"
#include "store/testing.h"
#include "tests/support/fake_hub.h"

namespace wok::store {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Request = testing::FakeHub::Request;
using Reply = testing::FakeHub::Reply;

std::string numbers(size_t bytes, uint32_t seed = 1) {
  std::string out(bytes, '\0');
  for (char& c : out) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return out;
}

class PullHub : public ::testing::Test {
 protected:
  PullHub() {
    options_.hubs = hub_.access();
    options_.now_unix_s = 1'700'000'000;
    options_.download.segment_bytes = 10'000;
    options_.download.retry.sleep = [this](int64_t ms) {
      const std::lock_guard lock(mutex_);
      waits_.push_back(ms);
    };
    options_.on_note = [this](const std::string& text) { notes_ += text + "\n"; };
  }
  Result<PullOutcome> pull(const std::string& name) {
    return store::pull(store_, *parse_hub_ref(name), options_);
  }
  std::string message(const std::string& name) {
    const auto outcome = pull(name);
    return outcome.ok() ? "it worked" : outcome.error().message;
  }
  size_t files_in(const std::string& name) const {
    std::error_code none;
    size_t count = 0;
    for (fs::directory_iterator it(store_.folder() + "/" + name, none), end; it != end; ++it) {
      if (it->path().filename() != "lock") ++count;
    }
    return count;
  }
  void expect_no_model() const {
    EXPECT_TRUE(store_.list()->empty());
    EXPECT_EQ(files_in("blobs"), 0U);
    EXPECT_EQ(files_in("folders"), 0U);
  }
  size_t requests_for(const std::string& part) {
    size_t count = 0;
    for (const Request& request : hub_.stub().requests()) {
      count += request.path.find(part) != std::string::npos ? 1 : 0;
    }
    return count;
  }

  TempFolder folder_ = testing::temp_folder();
  Store store_{folder_.path() + "/cache"};
  testing::FakeHub hub_;
  PullOptions options_;
  std::mutex mutex_;
  std::vector<int64_t> waits_;
  std::string notes_;
};

TEST_F(PullHub, TakesAGgufInParallelRanges) {
  const std::string bytes = numbers(95'000);
  hub_.files = {{"m-Q4_K_M.gguf", bytes}, {"m-Q8_0.gguf", "another model"}};
  uint64_t last = 0;
  options_.on_progress = [&](const PullProgress& progress) {
    if (progress.stage == PullProgress::Stage::kDownloading) last = progress.done_bytes;
    EXPECT_LE(progress.done_bytes, progress.total_bytes);
  };
  const auto outcome = pull("hf:org/repo");
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(testing::read_file(outcome->model.path), bytes);
  EXPECT_EQ(last, bytes.size());
  EXPECT_EQ(requests_for("/resolve/"), 10U);
  EXPECT_THAT(notes_, HasSubstr("took m-Q4_K_M of: m-Q4_K_M, m-Q8_0"));
  EXPECT_EQ(outcome->model.manifest.license, "mit");
  EXPECT_EQ(store_.resolve("hf:org/repo")->id, "hf:org/repo");
  EXPECT_EQ(files_in("tmp"), 0U);
  EXPECT_TRUE(pull("hf:org/repo")->was_there);
  EXPECT_EQ(requests_for("/resolve/"), 10U);
  ASSERT_TRUE(pull("hf:org/repo:Q4_K_M").ok());  // the same blob by another name
  EXPECT_EQ(requests_for("/resolve/"), 10U);
  EXPECT_EQ(files_in("blobs"), 1U);
}

TEST_F(PullHub, TakesTheSameBytesFromModelScopeAndOllama) {
  const std::string bytes = numbers(25'000);
  hub_.files = {{"deep/m-Q4_K_M.gguf", bytes}};
  EXPECT_EQ(testing::read_file(pull("ms:org/repo")->model.path), bytes);
  hub_.edit([&](auto& hub) {
    hub.files = {
        {"model", bytes}, {"template", "{{ .Prompt }}"}, {"license", "\n  MIT License\n\nx"}};
  });
  const auto outcome = pull("tiny:1b");
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(outcome->model.manifest.name, "tiny:1b");
  EXPECT_EQ(outcome->model.manifest.license, "MIT License");
  EXPECT_THAT(notes_, HasSubstr("Ollama's template are not used"));
  EXPECT_EQ(store_.resolve("ollama:tiny:1b")->path, store_.resolve("ms:org/repo")->path);
  hub_.edit([&](auto& hub) { hub.files = {{"template", "only"}}; });
  EXPECT_THAT(message("tiny:1b"), HasSubstr("has 0 model files"));
}

TEST_F(PullHub, AModelOfSeveralFilesIsAFolder) {
  hub_.files = {{"config.json", "{}"},
                {"tokenizer.json", "{}"},  // the same bytes as another file
                {"merges.txt", ""},
                {"model.safetensors.index.json",
                 R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})"},
                {"model-1.safetensors", numbers(21'000)},
                {"model-2.safetensors", numbers(9'000, 2)},
                {"unused.safetensors", numbers(9'000, 3)}};
  hub_.page_files = 2;  // and a listing of several pages
  const auto outcome = pull("hf:org/repo");
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  const std::string folder = outcome->model.path;
  EXPECT_EQ(testing::read_file(folder + "/model-1.safetensors"), numbers(21'000));
  EXPECT_EQ(testing::read_file(folder + "/tokenizer.json"), "{}");
  EXPECT_TRUE(testing::exists(folder + "/merges.txt"));
  EXPECT_FALSE(testing::exists(folder + "/unused.safetensors"));
  EXPECT_EQ(store_.list()->front().problem, "");
  EXPECT_EQ(store_.list()->front().manifest.file_bytes,
            30'000U + 4 + hub_.files["model.safetensors.index.json"].size());
  EXPECT_TRUE(pull("hf:org/repo")->was_there);

  // A shard that is gone shows; a pull mends it without the others.
  fs::remove(fs::canonical(folder + "/model-2.safetensors"));
  EXPECT_THAT(store_.resolve("hf:org/repo").error().message,
              HasSubstr("model-2.safetensors is gone"));
  hub_.stub().forget_requests();
  ASSERT_TRUE(pull("hf:org/repo").ok());
  EXPECT_EQ(requests_for("model-1"), 0U);
  EXPECT_TRUE(store_.resolve("hf:org/repo").ok());

  // A name that shares files keeps them.
  ASSERT_TRUE(pull("hf:org/repo:safetensors").ok());
  ASSERT_TRUE(store_.remove("hf:org/repo").ok());
  EXPECT_EQ(store_.list()->front().problem, "");
  ASSERT_TRUE(store_.remove("hf:org/repo:safetensors").ok());
  expect_no_model();
}

TEST_F(PullHub, PartsOfAGgufLieBesideEachOther) {
  hub_.files = {{"Q8/m-Q8_0-00001-of-00002.gguf", numbers(500)},
                {"Q8/m-Q8_0-00002-of-00002.gguf", numbers(600)}};
  const auto outcome = pull("hf:org/repo:Q8_0");
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_THAT(outcome->model.path, ::testing::EndsWith("/m-Q8_0-00001-of-00002.gguf"));
  const fs::path second =
      fs::path(outcome->model.path).parent_path() / "m-Q8_0-00002-of-00002.gguf";
  EXPECT_EQ(testing::read_file(second.string()), numbers(600));
}

TEST_F(PullHub, CutConnectionsAreGoneOnWith) {
  const std::string bytes = numbers(30'000);
  hub_.files = {{"m.gguf", bytes}};
  options_.download.segment_bytes = 1 << 20;
  hub_.fault = [&](const Request& request) -> std::optional<Reply> {
    if (request.path.find("/resolve/") == std::string::npos) return std::nullopt;
    Reply reply = wok::test::file_reply(request, bytes);
    reply.cut_after = 4'000;
    return reply;
  };
  const auto outcome = pull("hf:org/repo");
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;  // more cuts than tries in a row
  EXPECT_EQ(testing::read_file(outcome->model.path), bytes);
  EXPECT_EQ(requests_for("/resolve/"), 8U);
  EXPECT_EQ(hub_.stub().requests().back().header("range"), "bytes=28000-29999");
}

TEST_F(PullHub, AServerThatIgnoresRangeIsReadWhole) {
  const std::string bytes = numbers(95'000);
  hub_.files = {{"m.gguf", bytes}};
  hub_.ranges = false;
  const auto outcome = pull("hf:org/repo");
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(testing::read_file(outcome->model.path), bytes);
}

TEST_F(PullHub, AWrongSumIsRefusedAndRemoved) {
  hub_.files = {{"m.gguf", numbers(25'000)}};
  hub_.listed_sha256 = std::string(64, 'a');
  EXPECT_THAT(message("hf:org/repo"), HasSubstr("the hub says " + std::string(64, 'a')));
  expect_no_model();
  EXPECT_EQ(files_in("tmp/partial"), 0U);
  hub_.edit([](auto& hub) { hub.listed_sha256 = "../../../etc/passwd"; });
  EXPECT_THAT(message("hf:org/repo"), HasSubstr("checksum of m.gguf is none"));

  hub_.edit([](auto& hub) {  // git's sum, of a small file
    hub.listed_sha256 = "";
    hub.files = {{"config.json", "{}"}, {"model.safetensors", numbers(500)}};
    hub.fault = [](const Request& request) -> std::optional<Reply> {
      if (!request.path.ends_with("/config.json")) return std::nullopt;
      return Reply{.status = 200, .body = "[]", .headers = {}};
    };
  });
  EXPECT_THAT(message("hf:org/repo"), HasSubstr("config.json of hf:org/repo has the checksum"));
  expect_no_model();
}

TEST_F(PullHub, WithoutSumsOnlySizesAreChecked) {
  hub_.files = {{"m.gguf", numbers(25'000)}};
  hub_.sums = false;
  ASSERT_TRUE(pull("hf:org/repo").ok());
  EXPECT_THAT(notes_, HasSubstr("no checksum of m.gguf"));
}

TEST_F(PullHub, AFileOfAnotherSizeIsRefused) {
  hub_.files = {{"m.gguf", numbers(25'000)}};
  for (const size_t size : {24'000, 26'000}) {
    hub_.edit([&](auto& hub) {
      hub.fault = [size](const Request& request) -> std::optional<Reply> {
        if (request.path.find("/resolve/") == std::string::npos) return std::nullopt;
        return wok::test::file_reply(request, numbers(size));
      };
    });
    EXPECT_THAT(message("hf:org/repo"), HasSubstr("not the one that the hub lists")) << size;
    expect_no_model();
  }
}

TEST_F(PullHub, TheTokenGoesToTheHubAndNoFurther) {
  const std::string bytes = numbers(25'000);
  wok::test::HttpStub storage(
      [&](const Request& request) { return wok::test::file_reply(request, bytes); });
  hub_.files = {{"m.gguf", bytes}};
  hub_.fault = [&](const Request& request) -> std::optional<Reply> {
    if (request.path.find("/resolve/") == std::string::npos) return std::nullopt;
    return Reply{
        .status = 302, .body = "", .headers = {{"Location", storage.url() + "/signed?x=y"}}};
  };
  options_.hubs.hf_token = "hf_secret";
  const auto outcome = pull("hf:org/repo");
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(testing::read_file(outcome->model.path), bytes);
  for (const Request& request : hub_.stub().requests()) {
    EXPECT_EQ(request.header("authorization"), "Bearer hf_secret") << request.path;
  }
  ASSERT_EQ(storage.requests().size(), 3U);
  for (const Request& request : storage.requests()) {
    EXPECT_EQ(request.header("authorization"), "");
    EXPECT_EQ(request.path, "/signed?x=y");
  }
}

TEST_F(PullHub, RateLimitsAndServerTroubleAreWaitedFor) {
  hub_.files = {{"m.gguf", numbers(500)}};
  int left = 3;
  hub_.fault = [&](const Request&) -> std::optional<Reply> {
    if (left-- <= 0) return std::nullopt;
    if (left == 2) return Reply{.status = 429, .body = "", .headers = {{"Retry-After", "7"}}};
    return Reply{.status = 503, .body = "", .headers = {}};
  };
  ASSERT_TRUE(pull("hf:org/repo").ok());
  EXPECT_EQ(waits_, (std::vector<int64_t>{7'000, 2'000, 4'000}));

  hub_.edit([](auto& hub) {
    hub.fault = [](const Request&) {
      return Reply{.status = 429, .body = "", .headers = {{"Retry-After", "3600"}}};
    };
  });
  EXPECT_THAT(message("hf:org/repo:m.gguf"), HasSubstr("asks to wait 3600 s"));
  hub_.edit([](auto& hub) {
    hub.fault = [](const Request&) { return Reply{.status = 500, .body = "", .headers = {}}; };
  });
  EXPECT_THAT(message("hf:org/repo:m.gguf"), HasSubstr("status 500 (6 tries)"));
}

TEST_F(PullHub, RefusalsSayWhatToDo) {
  EXPECT_THAT(message("hf:org/none"), HasSubstr("the hub has no repository org/none"));
  EXPECT_THAT(message("ms:org/none"), HasSubstr("ModelScope has no repository org/none"));
  EXPECT_THAT(message("none:1b"), HasSubstr("no model library/none with the tag 1b"));
  hub_.fault = [](const Request&) {
    return Reply{.status = 403, .body = "", .headers = {{"X-Error-Code", "GatedRepo"}}};
  };
  EXPECT_THAT(message("hf:org/repo"), HasSubstr("org/repo is gated: accept its terms"));
  EXPECT_THAT(message("hf:org/repo"), HasSubstr("set HF_TOKEN"));
  EXPECT_THAT(message("ms:org/repo"), HasSubstr("set MODELSCOPE_API_TOKEN"));
  options_.hubs.hf_token = "hf_secret";
  EXPECT_THAT(message("hf:org/repo"), HasSubstr("HF_TOKEN is set, but"));
  EXPECT_EQ(message("hf:org/repo").find("hf_secret"), std::string::npos);
  hub_.edit([](auto& hub) {
    hub.fault = [](const Request&) { return Reply{.status = 401, .body = "", .headers = {}}; };
  });
  options_.hubs.hf_token = "";
  EXPECT_THAT(message("hf:org/repo"), HasSubstr("there is no such repository, or it is private"));
  expect_no_model();
}

TEST_F(PullHub, ListingsThatMakeNoSense) {
  hub_.files = {{"m.gguf", numbers(500)}, {"../../evil.gguf", numbers(600)}};
  EXPECT_THAT(message("hf:org/repo"), HasSubstr("whose name is none"));
  EXPECT_THAT(message("ms:org/repo"), HasSubstr("whose name is none"));
  std::string body;
  hub_.fault = [&](const Request&) { return Reply{.status = 200, .body = body, .headers = {}}; };
  for (const char* text : {"", "{\"sha\": \"0123", "<html>please log in</html>", "[]", "7", "null",
                           "{}", R"({"Data":{"Files":[7]}})", R"({"layers":[7]})",
                           R"({"layers":[{"mediaType":"application/vnd.ollama.image.model",
                               "digest":"sha256:../../x","size":1}]})"}) {
    hub_.edit([&](auto&) { body = text; });
    for (const char* name : {"hf:org/repo", "ms:org/repo", "tiny:1b"}) {
      EXPECT_FALSE(pull(name).ok()) << name << ": " << text;
    }
  }
  // A listing whose connection ends early, again and again.
  hub_.edit([](auto& hub) {
    hub.fault = [](const Request&) {
      return Reply{.status = 200, .body = "{\"sha\": \"x\"}", .headers = {}, .cut_after = 5};
    };
  });
  EXPECT_THAT(message("hf:org/repo"), HasSubstr("6 tries"));
  expect_no_model();
}

TEST_F(PullHub, CancelKeepsWhatCameForTheNextPull) {
  const std::string bytes = numbers(95'000);
  hub_.files = {{"m.gguf", bytes}};
  options_.download.streams = 1;
  std::atomic<bool> cancel = false;
  int served = 0;
  hub_.fault = [&](const Request& request) -> std::optional<Reply> {
    if (request.path.find("/resolve/") != std::string::npos && ++served == 5) {
      cancel = true;
      return Reply{.status = 503, .body = "", .headers = {}};
    }
    return std::nullopt;
  };
  options_.cancelled = &cancel;
  EXPECT_EQ(pull("hf:org/repo").error().kind, ErrorKind::kCancelled);
  expect_no_model();
  EXPECT_EQ(files_in("tmp/partial"), 2U);
  cancel = false;
  hub_.stub().forget_requests();
  ASSERT_TRUE(pull("hf:org/repo").ok());
  EXPECT_EQ(requests_for("/resolve/"), 6U);  // four of ten segments were there
  EXPECT_EQ(files_in("tmp"), 0U);
}

TEST_F(PullHub, AKilledPullLeavesNoModelAndTheNextOneGoesOn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer allows no threads in a forked child";
#endif
  const std::string bytes = numbers(95'000);
  hub_.files = {{"m.gguf", bytes}};
  options_.download.streams = 1;
  pid_t victim = -1;
  int served = 0;
  hub_.fault = [&](const Request& request) -> std::optional<Reply> {
    if (request.path.find("/resolve/") != std::string::npos && ++served == 5) {
      ::kill(victim, SIGKILL);
      return Reply{.status = 503, .body = "", .headers = {}};
    }
    return std::nullopt;
  };
  hub_.edit([&](auto&) {  // the hub waits until the child is known
    victim = ::fork();
    if (victim == 0) {
      options_.on_progress = nullptr;
      ::_exit(pull("hf:org/repo").ok() ? 0 : 1);
    }
  });
  int status = 0;
  ::waitpid(victim, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  expect_no_model();
  hub_.stub().forget_requests();
  const auto outcome = pull("hf:org/repo");
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_EQ(testing::read_file(outcome->model.path), bytes);
  EXPECT_EQ(requests_for("/resolve/"), 6U);
}

TEST_F(PullHub, ANewVersionReplacesTheOldOne) {
  hub_.files = {{"m.gguf", numbers(500)}};
  ASSERT_TRUE(pull("ms:org/repo").ok());
  hub_.edit([](auto& hub) { hub.files = {{"m.gguf", numbers(700)}}; });
  const auto outcome = pull("ms:org/repo");
  ASSERT_TRUE(outcome.ok());
  EXPECT_FALSE(outcome->was_there);
  EXPECT_EQ(outcome->model.manifest.file_bytes, 700U);
  EXPECT_EQ(files_in("blobs"), 1U);
}

TEST_F(PullHub, TooSmallADiskIsSaidBeforeAnythingComes) {
  hub_.fault = [](const Request& request) -> std::optional<Reply> {
    if (!request.path.starts_with("/api/v1/")) return std::nullopt;
    return Reply{.status = 200,
                 .body = R"({"Data":{"Files":[{"Path":"m.gguf","Size":4000000000000000000,
                             "Sha256":")" +
                         std::string(64, 'a') + R"("}]}})",
                 .headers = {}};
  };
  EXPECT_THAT(message("ms:org/repo"), HasSubstr("not enough disk space"));
  EXPECT_EQ(requests_for("FilePath"), 0U);
}

TEST_F(PullHub, OldLeftoversGoAndOthersStay) {
  hub_.files = {{"m.gguf", numbers(500)}};
  testing::write_file(store_.partial_folder() + "/x.part", "x");
  ASSERT_TRUE(pull("hf:org/repo").ok());
  EXPECT_EQ(files_in("tmp/partial"), 1U);
  options_.now_unix_s = 4'000'000'000;  // years later
  ASSERT_TRUE(pull("hf:org/repo:m.gguf").ok());
  EXPECT_EQ(files_in("tmp/partial"), 0U);
}

}  // namespace
}  // namespace wok::store
