// Which files of a repository are the model.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "store/hubs/hub.h"

namespace wok::store {

struct Choice {
  std::vector<HubFile> files;  // GGUF: one, or all parts in order. Otherwise small files first
  std::string note;  // what was chosen where the user left it open, and what else there is
  bool safetensors = false;
};

// `variant`: "" for the default, a quant ("Q4_K_M", any case), a .gguf file's name or path, or
// "safetensors" for that form where there is GGUF too. The default is Q4_K_M, as it is for
// llama.cpp and Ollama, else what is nearest to it.
// Errors: kNotFound lists what there is; kInvalid for names that are no file names, missing parts,
// a quant that several files have; kUnsupported for other formats.
Result<Choice> choose_files(const std::vector<HubFile>& listing, const std::string& variant);

// The shards that model.safetensors.index.json names, in place of all that the listing has.
// Errors: kInvalid when one is not listed or the index makes no sense.
Status keep_indexed_shards(const std::string& index_text, std::vector<HubFile>& files);

// Both of them for a repository: the model's files and a note, with the index fetched and followed.
// Errors begin with the model's name.
Status add_chosen_files(const HubRef& ref, const std::vector<HubFile>& listing, Downloader& net,
                        HubModel& model);

constexpr std::string_view kSafetensorsIndex = "model.safetensors.index.json";

}  // namespace wok::store
