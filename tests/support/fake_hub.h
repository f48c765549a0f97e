// An imitation of the three hubs' protocols, for tests: repositories in memory, served from
// loopback, with a place to put faults in front of every answer.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/hubs/hub.h"
#include "store/hubs/words.h"
#include "store/sha256.h"
#include "store/testing.h"
#include "tests/support/http_stub.h"

namespace wok::store::testing {

class FakeHub {
 public:
  using Reply = wok::test::StubReply;
  using Request = wok::test::StubRequest;

  // Path and bytes of org/repo's files; also library/repo's layers, by kind, for Ollama.
  std::map<std::string, std::string> files;
  std::string listed_sha256;  // instead of the right one for every large file
  size_t page_files = 1000;
  bool sums = true;
  bool ranges = true;
  // Looks at every request first; an answer of its own goes out instead.
  std::function<std::optional<Reply>(const Request&)> fault;

  FakeHub() : stub_([this](const Request& request) { return answer(request); }) {}

  wok::test::HttpStub& stub() { return stub_; }
  // For changes between requests, which threads of the server read.
  template <class F>
  void edit(F change) {
    const std::lock_guard lock(mutex_);
    change(*this);
  }
  HubAccess access() const {
    HubAccess access;
    access.hf_endpoint = access.ms_endpoint = access.ollama_registry = stub_.url();
    return access;
  }

 private:
  static constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

  std::string sum(const std::string& bytes) const {
    return listed_sha256.empty() ? sha256_of(bytes) : listed_sha256;
  }
  Reply file(const Request& request, const std::string& bytes) const {
    if (!ranges) return {.status = 200, .body = bytes, .headers = {}};
    return wok::test::file_reply(request, bytes);
  }
  static Reply json(const nlohmann::json& body) {
    return {.status = 200, .body = body.dump(), .headers = {}};
  }
  static Reply none() { return {.status = 404, .body = "nothing", .headers = {}}; }

  Reply answer(const Request& request) {
    const std::lock_guard lock(mutex_);
    if (fault) {
      if (auto reply = fault(request)) return *reply;
    }
    const std::string& path = request.path;
    if (path == "/api/models/org/repo/revision/main") {
      return json({{"sha", kCommit}, {"cardData", {{"license", "mit"}}}});
    }
    if (path.starts_with(fmt::format("/api/models/org/repo/tree/{}?", kCommit))) return tree(path);
    if (path.starts_with("/api/v1/models/org/repo/repo/files?Revision=master")) return ms_list();
    if (path.starts_with("/v2/library/tiny/manifests/1b")) return manifest();
    for (const auto& [name, bytes] : files) {
      if (path == fmt::format("/org/repo/resolve/{}/{}", kCommit, url_path(name)) ||
          path == "/api/v1/models/org/repo/repo?Revision=master&FilePath=" + url_component(name) ||
          path == "/v2/library/tiny/blobs/sha256:" + sha256_of(bytes)) {
        return file(request, bytes);
      }
    }
    return none();
  }

  // Files of ten bytes and more are "large": they have a SHA-256, the others git's sum.
  Reply tree(const std::string& path) {
    const size_t at = path.find("cursor=");
    const size_t begin = at == std::string::npos ? 0 : std::stoul(path.substr(at + 7));
    nlohmann::json list = {{{"type", "directory"}, {"path", "folder"}, {"oid", "x"}, {"size", 0}}};
    size_t i = 0;
    for (const auto& [name, bytes] : files) {
      if (i++ < begin || list.size() > page_files) continue;
      nlohmann::json entry = {{"type", "file"}, {"path", name}, {"size", bytes.size()}};
      if (sums && bytes.size() >= 10) {
        entry["lfs"] = {{"oid", sum(bytes)}, {"size", bytes.size()}, {"pointerSize", 130}};
      } else if (sums) {
        const TempFolder folder = temp_folder();
        write_file(folder.path() + "/f", bytes);
        entry["oid"] = *git_sha1_of_file(folder.path() + "/f");
      }
      list.push_back(entry);
    }
    Reply reply = json(list);
    // As a mirror may: the link leads to the original's host.
    if (begin + page_files < files.size()) {
      reply.headers.emplace_back(
          "Link", fmt::format("<http://original.invalid/x?recursive=true&cursor={}>; rel=\"next\"",
                              begin + page_files));
    }
    return reply;
  }

  Reply ms_list() {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& [name, bytes] : files) {
      list.push_back(
          {{"Type", "blob"}, {"Path", name}, {"Size", bytes.size()}, {"Sha256", sum(bytes)}});
    }
    return json({{"Code", 200}, {"Data", {{"Files", list}}}});
  }

  Reply manifest() {
    nlohmann::json layers = nlohmann::json::array();
    for (const auto& [kind, bytes] : files) {
      layers.push_back({{"mediaType", "application/vnd.ollama.image." + kind},
                        {"digest", "sha256:" + sha256_of(bytes)},
                        {"size", bytes.size()}});
    }
    return json({{"schemaVersion", 2}, {"layers", layers}});
  }

  std::mutex mutex_;
  wok::test::HttpStub stub_;  // last: it answers until it goes
};

}  // namespace wok::store::testing
