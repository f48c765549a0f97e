#include "store/hubs/hub.h"

#include <fmt/format.h>

#include "store/known_models.h"

namespace wok::store {

std::span<const Hub> hubs() {
  static const std::vector<Hub> list = {kHuggingFace, kModelScope, kOllama};
  return list;
}

std::string HubRef::name() const {
  constexpr std::string_view kOwn = "library/";
  std::string text = repo;
  if (hub->prefix == kOllama.prefix) {
    if (repo.starts_with(kOwn)) text = repo.substr(kOwn.size());
    text += ":" + variant;
    if (repo.starts_with(kOwn) && find_known_model(text) == nullptr) return text;
    return fmt::format("{}:{}", hub->prefix, text);
  }
  if (!revision.empty()) text += "@" + revision;
  if (!variant.empty()) text += ":" + variant;
  return fmt::format("{}:{}", hub->prefix, text);
}

bool has_hub_prefix(std::string_view name) {
  for (const Hub& hub : hubs()) {
    if (name.starts_with(hub.prefix) && name.substr(hub.prefix.size()).starts_with(':')) {
      return true;
    }
  }
  return false;
}

Result<HubRef> parse_hub_ref(std::string_view name) {
  for (const Hub& hub : hubs()) {
    if (!name.starts_with(hub.prefix)) continue;
    const std::string_view rest = name.substr(hub.prefix.size());
    if (!rest.starts_with(':')) continue;
    WOK_TRY(ref, hub.parse(rest.substr(1)));
    ref.hub = &hub;
    return ref;
  }
  if (name.find(':') == std::string_view::npos || name.find('/') != std::string_view::npos) {
    return invalid(
        fmt::format("'{}' names no hub: expected hf:org/name, ms:org/name, ollama:name "
                    "or name:tag",
                    name));
  }
  WOK_TRY(ref, kOllama.parse(name));
  ref.hub = &hubs().back();
  return ref;
}

}  // namespace wok::store
