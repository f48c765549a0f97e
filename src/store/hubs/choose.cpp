#include "store/hubs/choose.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "store/hubs/words.h"

namespace wok::store {
namespace {

// From the usual compromise of size and quality outwards: a little smaller, then larger, then what
// loses more, then what is not quantized.
constexpr std::array kPreferred = {"Q4_K_M", "Q4_K_XL", "Q4_K_S", "IQ4_XS", "IQ4_NL", "Q4_1",
                                   "Q4_0",   "MXFP4",   "Q5_K_M", "Q5_K_S", "Q5_1",   "Q5_0",
                                   "Q6_K",   "Q8_0",    "Q3_K_L", "Q3_K_M", "Q3_K_S", "IQ3_M",
                                   "Q2_K",   "BF16",    "F16",    "F32"};
// Beside the weights of a Hugging Face folder (formats/hf_folder.h reads them).
constexpr std::array kFolderFiles = {
    "config.json",     "generation_config.json",  "tokenizer.json",       "tokenizer_config.json",
    "tokenizer.model", "special_tokens_map.json", "added_tokens.json",    "vocab.json",
    "merges.txt",      "chat_template.jinja",     "quantize_config.json", "quant_config.json"};
constexpr size_t kPartDigits = 5;

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// "x-00002-of-00005.gguf" as {"x", 2, 5}; a file of its own is part 1 of 1.
struct PartName {
  std::string stem;
  int64_t number = 1;
  int64_t count = 1;
};

PartName part_name(const std::string& path) {
  const std::string stem = path.substr(0, path.size() - std::string_view(".gguf").size());
  constexpr size_t kTail = 1 + kPartDigits + 4 + kPartDigits;  // "-00001-of-00005"
  PartName whole{stem, 1, 1};
  if (stem.size() <= kTail) return whole;
  const std::string tail = stem.substr(stem.size() - kTail);
  const auto digits = [&](size_t at) -> int64_t {
    const std::string text = tail.substr(at, kPartDigits);
    return text.find_first_not_of("0123456789") == std::string::npos ? std::stoll(text) : -1;
  };
  const int64_t number = digits(1);
  const int64_t count = digits(tail.size() - kPartDigits);
  if (tail.front() != '-' || tail.substr(1 + kPartDigits, 4) != "-of-" || number < 1 || count < 1) {
    return whole;
  }
  return {stem.substr(0, stem.size() - kTail), number, count};
}

// All parts of one model, by number.
struct Model {
  std::string stem;
  int64_t count = 1;
  std::map<int64_t, const HubFile*> parts;

  std::string name() const { return base_name(stem); }
};

// Other things that are kept as GGUF beside a model: image encoders, importance matrices, drafts.
bool is_model(const std::string& path) {
  if (!path.ends_with(".gguf")) return false;
  const std::string name = upper(base_name(path));
  return name.find("MMPROJ") == std::string::npos && name.find("IMATRIX") == std::string::npos &&
         !name.starts_with("MTP-");
}

std::vector<Model> gguf_models(const std::vector<HubFile>& listing) {
  std::map<std::pair<std::string, int64_t>, Model> found;
  for (const HubFile& file : listing) {
    if (!is_model(file.path)) continue;
    const PartName part = part_name(file.path);
    Model& model = found[{part.stem, part.count}];
    model.stem = part.stem;
    model.count = part.count;
    model.parts[part.number] = &file;
  }
  std::vector<Model> models;
  for (auto& [key, model] : found) models.push_back(std::move(model));
  return models;
}

// As a whole word of the path: "Q4_K" is not in "x-Q4_K_M", but "Q4_K_M" is in "x-UD-Q4_K_M".
bool has_quant(const std::string& stem, std::string_view quant) {
  const std::string text = upper(stem);
  const std::string word = upper(quant);
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
    const bool ends =
        end == text.size() || std::string_view("-./").find(text[end]) != std::string_view::npos;
    if (begins && ends) return true;
  }
  return false;
}

std::string names_of(const std::vector<Model>& models) {
  std::vector<std::string> names;
  for (const Model& model : models) names.push_back(model.name());
  constexpr size_t kShown = 30;
  const bool more = names.size() > kShown;
  if (more) names.resize(kShown);
  return fmt::format("{}{}", fmt::join(names, ", "), more ? ", …" : "");
}

// The shortest name: "x-Q4_K_M" rather than "x-UD-Q4_K_M". Null: none, or several alike.
Result<const Model*> by_quant(const std::vector<Model>& models, std::string_view quant) {
  std::vector<const Model*> found;
  for (const Model& model : models) {
    if (has_quant(model.stem, quant)) found.push_back(&model);
  }
  if (found.empty()) return static_cast<const Model*>(nullptr);
  const auto shorter = [](const Model* a, const Model* b) {
    return a->name().size() < b->name().size();
  };
  std::stable_sort(found.begin(), found.end(), shorter);
  if (found.size() > 1 && !shorter(found[0], found[1])) {
    return invalid(fmt::format("'{}' is in the names of {} and {}: give one file's name", quant,
                               found[0]->stem + ".gguf", found[1]->stem + ".gguf"));
  }
  return found[0];
}

// By path, else by name where only one folder has it; any part stands for all.
Result<const Model*> by_file(const std::vector<Model>& models, const std::string& file) {
  const PartName wanted = part_name(file);
  std::vector<const Model*> found;
  for (const Model& model : models) {
    if (model.count != wanted.count) continue;
    if (model.stem == wanted.stem) return &model;
    if (model.name() == wanted.stem) found.push_back(&model);
  }
  if (found.size() == 1) return found[0];
  return not_found(fmt::format("there is no {}{} among its GGUF files: {}", file,
                               found.empty() ? "" : " of only one folder", names_of(models)));
}

Result<Choice> gguf_choice(const Model& model) {
  Choice choice;
  for (int64_t part = 1; part <= model.count; ++part) {
    const auto it = model.parts.find(part);
    if (it == model.parts.end()) {
      return invalid(fmt::format("part {} of {} of {} is not in the repository", part, model.count,
                                 model.name()));
    }
    choice.files.push_back(*it->second);
  }
  return choice;
}

Result<Choice> choose_gguf(const std::vector<Model>& models, const std::string& variant) {
  if (variant.ends_with(".gguf")) {
    WOK_TRY(model, by_file(models, variant));
    return gguf_choice(*model);
  }
  if (!variant.empty()) {
    WOK_TRY(model, by_quant(models, variant));
    if (model == nullptr) {
      return not_found(fmt::format("none of its GGUF files has '{}' in its name. There are: {}",
                                   variant, names_of(models)));
    }
    return gguf_choice(*model);
  }
  const Model* chosen = models.size() == 1 ? &models.front() : nullptr;
  for (size_t i = 0; chosen == nullptr && i < kPreferred.size(); ++i) {
    const Result<const Model*> found = by_quant(models, kPreferred[i]);
    if (found.ok()) chosen = *found;
  }
  if (chosen == nullptr) {
    return invalid(
        fmt::format("it has several GGUF files and none of a usual quant: give one's name "
                    "behind a ':'. There are: {}",
                    names_of(models)));
  }
  WOK_TRY(choice, gguf_choice(*chosen));
  if (models.size() > 1) {
    choice.note = fmt::format("took {} of: {}", chosen->name(), names_of(models));
  }
  return choice;
}

Result<Choice> choose_safetensors(const std::vector<HubFile>& listing) {
  Choice choice{.files = {}, .note = "", .safetensors = true};
  std::vector<HubFile> weights;
  bool config = false;
  bool index = false;
  bool single = false;
  std::vector<std::string> others;
  for (const HubFile& file : listing) {
    const bool small =
        std::find(kFolderFiles.begin(), kFolderFiles.end(), file.path) != kFolderFiles.end();
    config |= file.path == "config.json";
    index |= file.path == kSafetensorsIndex;
    single |= file.path == "model.safetensors";
    if (small || file.path == kSafetensorsIndex) choice.files.push_back(file);
    if (file.path.ends_with(".safetensors") && file.path.find('/') == std::string::npos) {
      weights.push_back(file);
    }
    if (file.path.ends_with(".bin") || file.path.ends_with(".pt") || file.path.ends_with(".pth")) {
      others.push_back(file.path);
    }
  }
  if (!index && !single) {
    const std::string there =
        others.empty() ? "" : fmt::format(" (it has {}, which wok does not read)", others.front());
    return unsupported(
        fmt::format("it has neither GGUF files nor model.safetensors or its index{}", there));
  }
  if (!config) return invalid("it has safetensors but no config.json");
  for (const HubFile& file : weights) {
    if (index || file.path == "model.safetensors") choice.files.push_back(file);
  }
  return choice;
}

}  // namespace

Result<Choice> choose_files(const std::vector<HubFile>& listing, const std::string& variant) {
  for (const HubFile& file : listing) {
    if (safe_repo_path(file.path)) continue;
    return invalid(fmt::format(
        "it lists a file whose name is none: {}. Nothing is fetched.",
        nlohmann::json(file.path).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)));
  }
  const std::vector<Model> models = gguf_models(listing);
  const bool folder = variant == "safetensors" || (models.empty() && variant.empty());
  if (folder) return choose_safetensors(listing);
  if (models.empty()) {
    return not_found(
        fmt::format("it has no GGUF file, so '{}' means nothing there; without it, or "
                    "with safetensors instead, its safetensors are taken",
                    variant));
  }
  return choose_gguf(models, variant);
}

Status keep_indexed_shards(const std::string& index_text, std::vector<HubFile>& files) {
  const auto json = nlohmann::json::parse(index_text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object() ||
      json["weight_map"].empty()) {
    return invalid(fmt::format("its {} has no weight_map", kSafetensorsIndex));
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    names.insert(file.is_string() ? file.get<std::string>() : "");
  }
  std::set<std::string> listed;
  for (const HubFile& file : files) listed.insert(file.path);
  for (const std::string& name : names) {
    if (!name.ends_with(".safetensors") || listed.count(name) == 0) {
      return invalid(fmt::format("its index names the shard '{}', which is not in the repository",
                                 safe_repo_path(name) ? name : "?"));
    }
  }
  std::erase_if(files, [&](const HubFile& file) {
    return file.path.ends_with(".safetensors") && names.count(file.path) == 0;
  });
  return Ok{};
}

Status add_chosen_files(const HubRef& ref, const std::vector<HubFile>& listing, Downloader& net,
                        HubModel& model) {
  const auto named = [&](const Error& error) {
    return Error{error.kind, fmt::format("{}: {}", ref.name(), error.message)};
  };
  Result<Choice> choice = choose_files(listing, ref.variant);
  if (!choice.ok()) return named(choice.error());
  for (const HubFile& file : choice->files) {
    if (file.path != kSafetensorsIndex) continue;
    WOK_TRY(text, net.get_text({.url = file.url, .headers = model.headers, .range = ""},
                               kMaxAnswerBytes, model.explain));
    const Status kept = keep_indexed_shards(text, choice->files);
    if (!kept.ok()) return named(kept.error());
    break;
  }
  model.files = std::move(choice->files);
  if (!choice->note.empty()) model.notes.push_back(choice->note);
  return Ok{};
}

}  // namespace wok::store
