// Places on the net that keep models by name. A hub is one file in this folder and one name in the
// list of hub.cpp. What a user types for one:
//
//   hf:org/name[@revision][:file.gguf or quant]    Hugging Face, or a hub of the same API
//   ms:org/name[@revision][:file.gguf or quant]    ModelScope
//   ollama:[user/]name[:tag]                       Ollama's registry; also NAME:TAG without prefix
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/download.h"

namespace wok::store {

struct Hub;

// A model's name taken apart. Everything in it is of a small alphabet, so that it can stand in
// paths and URLs, and no component is "." or "..".
struct HubRef {
  const Hub* hub = nullptr;
  std::string repo;      // "org/name"; Ollama's own models are "library/name"
  std::string revision;  // a branch, tag or commit; "" = the hub's default
  std::string variant;   // a file, a quant, or Ollama's tag; "" = choose

  // What the store calls it: as it is typed, but Ollama's without prefix where no model of wok's
  // own list has that name.
  std::string name() const;
};

// Addresses and tokens; the values of these environment variables, "" when unset.
struct HubAccess {
  std::string hf_endpoint;      // HF_ENDPOINT
  std::string hf_token;         // HF_TOKEN
  std::string ms_endpoint;      // MODELSCOPE_ENDPOINT
  std::string ms_token;         // MODELSCOPE_API_TOKEN
  std::string ollama_registry;  // OLLAMA_REGISTRY
};

struct HubFile {
  std::string path;  // in the repository
  uint64_t bytes = 0;
  std::string sha256;    // "" when the hub does not say
  std::string git_sha1;  // the same; of small files
  std::string url;
};

// A model as a hub has it: what to fetch, in this order.
struct HubModel {
  std::vector<HubFile> files;
  std::vector<std::string> headers;  // for their requests
  Explain explain;                   // what a refusal of one means
  std::string source;                // "https://…/org/name at 0123abcd"
  bool pinned = false;               // that source never means other files
  std::string license;               // "" when the hub does not say
  std::vector<std::string> notes;    // for the user: what was chosen, what is not used
};

struct Hub {
  std::string_view prefix;  // "hf"
  std::string_view title;   // "Hugging Face"
  // `text` is what stands behind the prefix. Errors: kInvalid with the form that is expected.
  Result<HubRef> (*parse)(std::string_view text);
  // Asks the hub. Errors: kNotFound, kInvalid (its answer makes no sense), kUnsupported, kIo; a
  // repository that wants a token says which variable to set.
  Result<HubModel> (*look_up)(const HubRef& ref, const HubAccess& access, Downloader& net);
};

std::span<const Hub> hubs();
extern const Hub kHuggingFace;
extern const Hub kModelScope;
extern const Hub kOllama;

// True for "hf:…", "ms:…" and "ollama:…", well-formed or not.
bool has_hub_prefix(std::string_view name);

// A prefixed name, or "name:tag" for Ollama's registry. Errors: kInvalid.
Result<HubRef> parse_hub_ref(std::string_view name);

}  // namespace wok::store
