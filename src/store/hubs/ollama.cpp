// Ollama's registry, or one of the same protocol at OLLAMA_REGISTRY. It is the container
// registries' (github.com/opencontainers/distribution-spec) with layers of its own media types:
//   GET /v2/NAMESPACE/NAME/manifests/TAG
//   GET /v2/NAMESPACE/NAME/blobs/sha256:HEX      redirects to where the bytes are
//
// Only the model's layer is taken. Templates are programs in Go's template language and are not
// interpreted; the file's own chat template is used instead.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "store/hubs/hub.h"
#include "store/hubs/words.h"
#include "store/names.h"

namespace wok::store {
namespace {

constexpr std::string_view kRegistry = "https://registry.ollama.ai";
constexpr std::string_view kLayer = "application/vnd.ollama.image.";
constexpr uint64_t kMaxLicenseBytes = 1 << 20;
constexpr size_t kMaxLicenseName = 60;

Result<HubRef> parse(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  HubRef ref;
  ref.repo =
      name.find('/') == std::string_view::npos ? "library/" + std::string(name) : std::string(name);
  ref.variant = colon == std::string_view::npos ? "latest" : std::string(text.substr(colon + 1));
  const size_t slash = ref.repo.find('/');
  const bool good = text.size() <= 128 && valid_ref_path(ref.repo) &&
                    std::count(ref.repo.begin(), ref.repo.end(), '/') == 1 &&
                    valid_plain_name(ref.repo.substr(slash + 1) + ":" + ref.variant);
  if (good) return ref;
  return invalid(
      fmt::format("'{}' is not understood: expected name:tag or user/name:tag as Ollama "
                  "writes it, for example qwen3:0.6b",
                  text.substr(0, 128)));
}

Error explain(const HubRef& ref, const HttpReply& reply) {
  if (reply.status == 404) {
    return not_found(
        fmt::format("Ollama's registry has no model {} with the tag {}", ref.repo, ref.variant));
  }
  if (reply.status == 401 || reply.status == 403) {
    return invalid(
        fmt::format("Ollama's registry does not show {} (status {}): it is not there, or "
                    "private, and wok does not log in there",
                    ref.repo, reply.status));
  }
  return io_error(
      fmt::format("Ollama's registry answers with status {} for {}", reply.status, ref.repo));
}

struct Layer {
  std::string kind;  // "model", "template"
  std::string sha256;
  uint64_t bytes = 0;
};

Result<std::vector<Layer>> read_layers(const nlohmann::json& manifest, const std::string& url) {
  const auto list = manifest.is_object() ? manifest.find("layers") : manifest.end();
  if (list == manifest.end() || !list->is_array()) return invalid(url + " is not a manifest");
  std::vector<Layer> layers;
  for (const auto& entry : *list) {
    const std::string type = text_of(entry, "mediaType");
    const std::string digest = text_of(entry, "digest");
    if (!type.starts_with(kLayer)) continue;
    Layer layer{.kind = type.substr(kLayer.size(), type.find(';') - kLayer.size()),
                .sha256 = digest.substr(std::min<size_t>(digest.size(), 7)),
                .bytes = number_of(entry, "size")};
    if (!digest.starts_with("sha256:") || !valid_sha256_hex(layer.sha256)) {
      return invalid(fmt::format("{}: a layer's digest is not sha256: and 64 hex digits", url));
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

// The first line of a licence's text is its name.
std::string license_name(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  std::string line = text.substr(begin, text.find_first_of("\r\n", begin) - begin);
  while (line.ends_with(' ')) line.pop_back();
  if (line.size() > kMaxLicenseName) line.resize(kMaxLicenseName);
  const bool plain =
      std::all_of(line.begin(), line.end(), [](unsigned char c) { return c >= ' ' && c < 0x7f; });
  return plain ? line : "";
}

Result<HubModel> look_up(const HubRef& ref, const HubAccess& access, Downloader& net) {
  WOK_TRY(registry, endpoint_of("OLLAMA_REGISTRY", access.ollama_registry, kRegistry));
  HubModel model;
  model.explain = [ref](const HttpReply& reply) { return explain(ref, reply); };
  const std::string base = fmt::format("{}/v2/{}", registry, url_path(ref.repo));
  const std::string url = fmt::format("{}/manifests/{}", base, url_component(ref.variant));
  WOK_TRY(text,
          net.get_text({.url = url,
                        .headers = {"Accept: application/vnd.docker.distribution.manifest.v2+json"},
                        .range = ""},
                       kMaxAnswerBytes, model.explain));
  WOK_TRY(json, parse_answer(text, url));
  WOK_TRY(layers, read_layers(json, url));
  std::vector<std::string> unused;
  for (const Layer& layer : layers) {
    const std::string blob = fmt::format("{}/blobs/sha256:{}", base, layer.sha256);
    if (layer.kind == "model") {
      model.files.push_back({.path = "model.gguf",
                             .bytes = layer.bytes,
                             .sha256 = layer.sha256,
                             .git_sha1 = "",
                             .url = blob});
    } else if (layer.kind == "license" && model.license.empty()) {
      const Result<std::string> license =
          net.get_text({.url = blob, .headers = {}, .range = ""}, kMaxLicenseBytes, model.explain);
      if (!license.ok() && license.error().kind == ErrorKind::kCancelled) return license.error();
      if (license.ok())
        model.license = license_name(*license);  // unreadable: no reason not to pull
    } else if (layer.kind == "adapter" || layer.kind == "tensor") {
      return unsupported(
          fmt::format("{} is made of '{}' layers, which wok does not read; it reads "
                      "models of one GGUF file",
                      ref.name(), layer.kind));
    } else if (layer.kind == "template" || layer.kind == "params" || layer.kind == "projector" ||
               layer.kind == "system") {
      unused.push_back(layer.kind);
    }
  }
  if (model.files.size() != 1 || model.files.front().bytes == 0) {
    return unsupported(
        fmt::format("{} has {} model files, expected one; a model that only runs on "
                    "Ollama's machines has none",
                    ref.name(), model.files.size()));
  }
  if (!unused.empty()) {
    model.notes.push_back(
        fmt::format("Ollama's {} are not used: the chat template is the model "
                    "file's own, everything else follows wok's settings",
                    fmt::join(unused, ", ")));
  }
  model.source = fmt::format("{}/{}:{}", registry, ref.repo, ref.variant);
  return model;
}

}  // namespace

const Hub kOllama = {"ollama", "Ollama's registry", &parse, &look_up};

}  // namespace wok::store
