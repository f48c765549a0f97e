// ModelScope, or what speaks its API at MODELSCOPE_ENDPOINT. As its Python client (modelscope/hub/
// api.py and file_download.py) does it:
//   GET /api/v1/models/REPO/repo/files?Revision=REV&Recursive=true    files with sizes and SHA-256
//   GET /api/v1/models/REPO/repo?Revision=REV&FilePath=PATH           a file
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "store/hubs/choose.h"
#include "store/hubs/hub.h"
#include "store/hubs/words.h"

namespace wok::store {
namespace {

constexpr std::string_view kEndpoint = "https://www.modelscope.cn";

Error explain(const HubRef& ref, bool has_token, const HttpReply& reply) {
  if (reply.status == 401 || reply.status == 403) {
    return invalid(
        fmt::format("ModelScope does not show {} (status {}): {}", ref.repo, reply.status,
                    has_token ? "MODELSCOPE_API_TOKEN is set, but it does not allow it"
                              : "set MODELSCOPE_API_TOKEN to a token of an account that may"));
  }
  if (reply.status == 404) {
    return not_found(
        fmt::format("ModelScope has no repository {}, or not that revision of it", ref.repo));
  }
  return io_error(fmt::format("ModelScope answers with status {} for {}", reply.status, ref.repo));
}

Result<HubRef> parse(std::string_view text) {
  WOK_TRY(ref, parse_repo_ref("ms", text));
  if (ref.repo.find('/') != std::string::npos) return ref;
  return invalid(fmt::format("'ms:{}' is not understood: expected ms:org/name", text));
}

Result<HubModel> look_up(const HubRef& ref, const HubAccess& access, Downloader& net) {
  WOK_TRY(endpoint, endpoint_of("MODELSCOPE_ENDPOINT", access.ms_endpoint, kEndpoint));
  WOK_TRY(authorization, bearer("MODELSCOPE_API_TOKEN", access.ms_token));
  HubModel model;
  if (!authorization.empty()) {
    // The client sends its token as a cookie where older servers look for it.
    model.headers = {authorization, "Cookie: m_session_id=" + access.ms_token};
  }
  model.explain = [ref, has_token = !authorization.empty()](const HttpReply& reply) {
    return explain(ref, has_token, reply);
  };
  const std::string revision = ref.revision.empty() ? "master" : ref.revision;
  const std::string repo = fmt::format("{}/api/v1/models/{}/repo", endpoint, url_path(ref.repo));
  const std::string list_url =
      fmt::format("{}/files?Revision={}&Recursive=true", repo, url_component(revision));
  WOK_TRY(text, net.get_text({.url = list_url, .headers = model.headers, .range = ""},
                             kMaxAnswerBytes, model.explain));
  WOK_TRY(json, parse_answer(text, list_url));
  const nlohmann::json data = json.is_object() ? json.value("Data", nlohmann::json()) : json;
  const auto listed = data.is_object() ? data.find("Files") : data.end();
  if (listed == data.end() || !listed->is_array()) {
    const std::string said = text_of(json, "Message");
    return invalid(fmt::format("ModelScope lists no files of {}{}{}", ref.repo,
                               said.empty() ? "" : ": ", safe_repo_path(said) ? said : ""));
  }
  std::vector<HubFile> files;
  for (const auto& entry : *listed) {
    if (text_of(entry, "Type") == "tree") continue;
    HubFile file;
    file.path = text_of(entry, "Path");
    file.bytes = number_of(entry, "Size");
    file.sha256 = text_of(entry, "Sha256");
    if (file.path.empty() || !entry.contains("Size")) {
      return invalid(fmt::format("{} lists a file without a name or a size", list_url));
    }
    file.url = fmt::format("{}?Revision={}&FilePath={}", repo, url_component(revision),
                           url_component(file.path));
    files.push_back(std::move(file));
  }
  model.source = fmt::format("{}/models/{} at {}", endpoint, ref.repo, revision);
  WOK_RETURN_IF_ERROR(add_chosen_files(ref, files, net, model));
  return model;
}

}  // namespace

const Hub kModelScope = {"ms", "ModelScope", &parse, &look_up};

}  // namespace wok::store
