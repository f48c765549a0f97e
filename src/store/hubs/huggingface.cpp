// Hugging Face's hub, and whatever speaks its API at HF_ENDPOINT (huggingface.co/docs/hub/api):
//   GET /api/models/REPO/revision/REV               commit and licence
//   GET /api/models/REPO/tree/COMMIT?recursive=true files with sizes and sums, in pages
//   GET /REPO/resolve/COMMIT/PATH                   a file; redirects to where its bytes are
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/hubs/choose.h"
#include "store/hubs/hub.h"
#include "store/hubs/words.h"

namespace wok::store {
namespace {

constexpr std::string_view kEndpoint = "https://huggingface.co";
constexpr int kMaxPages = 100;

Error explain(const HubRef& ref, bool has_token, const HttpReply& reply) {
  // The hub says more in headers than in the status: 401 is also what a name that does not exist
  // gets without a token.
  const std::string code = reply.header("x-error-code");
  const std::string repo = ref.repo;
  const char* set = has_token ? "HF_TOKEN is set, but it does not allow it"
                              : "set HF_TOKEN to a token of an account that may";
  if (code == "GatedRepo") {
    return invalid(
        fmt::format("{} is gated: accept its terms on its page in a browser, and {}", repo, set));
  }
  if (code == "RevisionNotFound") {
    return not_found(fmt::format("{} has no revision '{}'", repo, ref.revision));
  }
  if (code == "EntryNotFound") {
    return not_found(fmt::format("a file that {} lists is not there", repo));
  }
  if (reply.status == 401 || reply.status == 403) {
    return invalid(
        fmt::format("the hub does not show {} (status {}): there is no such repository, or "
                    "it is private or gated. Check the name; to read it {}",
                    repo, reply.status, set));
  }
  if (reply.status == 404) return not_found(fmt::format("the hub has no repository {}", repo));
  return io_error(fmt::format("the hub answers with status {} for {}", reply.status, repo));
}

// The part behind '?' of the Link header's next page: a mirror's links may lead to the original.
std::string next_query(const HttpReply& reply) {
  const std::string link = reply.header("link");
  const size_t next = link.find("rel=\"next\"");
  if (next == std::string::npos) return "";
  const size_t begin = link.rfind('<', next);
  const size_t end = link.find('>', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos || end > next) return "";
  const std::string url = link.substr(begin + 1, end - begin - 1);
  const size_t query = url.find('?');
  return query == std::string::npos ? "" : url.substr(query);
}

Result<HubFile> read_entry(const nlohmann::json& entry, const std::string& files_url,
                           const std::string& page) {
  HubFile file;
  file.path = text_of(entry, "path");
  file.bytes = number_of(entry, "size");
  const auto lfs = entry.find("lfs");
  if (lfs != entry.end() && lfs->is_object()) {
    file.sha256 = text_of(*lfs, "oid");
    file.bytes = number_of(*lfs, "size");
  } else {
    file.git_sha1 = text_of(entry, "oid");
  }
  if (!entry.contains("size") || file.path.empty()) {
    return invalid(fmt::format("{} lists a file without a name or a size", page));
  }
  file.url = files_url + url_path(file.path);
  return file;
}

Result<std::vector<HubFile>> list_files(const std::string& tree_url, const std::string& files_url,
                                        const HubModel& model, Downloader& net) {
  std::vector<HubFile> files;
  std::string query = "?recursive=true";
  for (int page = 0; !query.empty(); ++page) {
    if (page == kMaxPages) return invalid(tree_url + " has no end of pages");
    HttpReply reply;
    WOK_TRY(text, net.get_text({.url = tree_url + query, .headers = model.headers, .range = ""},
                               kMaxAnswerBytes, model.explain, &reply));
    WOK_TRY(json, parse_answer(text, tree_url));
    if (!json.is_array()) return invalid(tree_url + " is not a list of files");
    for (const auto& entry : json) {
      if (text_of(entry, "type") != "file") continue;
      WOK_TRY(file, read_entry(entry, files_url, tree_url));
      files.push_back(std::move(file));
    }
    query = next_query(reply);
  }
  return files;
}

std::string license_of(const nlohmann::json& info) {
  const auto card = info.find("cardData");
  if (card == info.end()) return "";
  const std::string name = text_of(*card, "license_name");  // where "license" is only "other"
  return name.empty() ? text_of(*card, "license") : name;
}

Result<HubRef> parse(std::string_view text) {
  return parse_repo_ref("hf", text);
}

Result<HubModel> look_up(const HubRef& ref, const HubAccess& access, Downloader& net) {
  WOK_TRY(endpoint, endpoint_of("HF_ENDPOINT", access.hf_endpoint, kEndpoint));
  WOK_TRY(authorization, bearer("HF_TOKEN", access.hf_token));
  HubModel model;
  if (!authorization.empty()) model.headers.push_back(authorization);
  model.explain = [ref, has_token = !authorization.empty()](const HttpReply& reply) {
    return explain(ref, has_token, reply);
  };
  const std::string revision = ref.revision.empty() ? "main" : ref.revision;
  const std::string api = fmt::format("{}/api/models/{}", endpoint, url_path(ref.repo));
  const std::string info_url = fmt::format("{}/revision/{}", api, url_component(revision));
  WOK_TRY(text, net.get_text({.url = info_url, .headers = model.headers, .range = ""},
                             kMaxAnswerBytes, model.explain));
  WOK_TRY(info, parse_answer(text, info_url));
  if (!info.is_object()) return invalid(info_url + " does not describe a model");
  // From here on one commit is meant, whatever is pushed meanwhile.
  const std::string sha = text_of(info, "sha");
  const std::string commit = url_component(sha.empty() ? revision : sha);
  model.pinned = !sha.empty();
  model.license = license_of(info);
  model.source = fmt::format("{}/{} at {}", endpoint, ref.repo, commit);
  const std::string files_url =
      fmt::format("{}/{}/resolve/{}/", endpoint, url_path(ref.repo), commit);
  WOK_TRY(files, list_files(fmt::format("{}/tree/{}", api, commit), files_url, model, net));
  WOK_RETURN_IF_ERROR(add_chosen_files(ref, files, net, model));
  return model;
}

}  // namespace

const Hub kHuggingFace = {"hf", "Hugging Face", &parse, &look_up};

}  // namespace wok::store
