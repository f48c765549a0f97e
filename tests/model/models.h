// The two real models, from the store where `make test` put them, and the tiny ones of
// tests/golden.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "formats/model_file.h"
#include "kernels/isa.h"
#include "models/model.h"
#include "store/store.h"

namespace wok::test {

inline std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The file behind a pulled name, or tests/golden/ and the name of what lies there. A missing
// model fails the test: what cannot run proves nothing.
inline std::string model_path(const std::string& name) {
  if (name.ends_with(".gguf") || name.starts_with("hf_"))
    return WOK_SOURCE_DIR "/tests/golden/" + name;
  auto folder = store::default_cache_dir(env("WOK_CACHE_DIR"), env("XDG_CACHE_HOME"), env("HOME"));
  if (!folder.ok()) {
    ADD_FAILURE() << folder.error().message;
    return "";
  }
  auto found = store::Store(*folder).find(name);
  if (!found.ok()) {
    ADD_FAILURE() << found.error().message;
    return "";
  }
  return found->path;
}

struct TestModel {
  std::shared_ptr<const ModelFile> file;
  std::unique_ptr<ComputePool> pool;
  std::unique_ptr<Model> model;
};

// isa "": the best of this machine. Null (and a failure) when it cannot be loaded.
inline std::unique_ptr<TestModel> load(const std::string& name, const std::string& isa,
                                       int32_t threads = 2) {
  const std::string path = model_path(name);
  if (path.empty()) return nullptr;
  auto choice = choose_isa(isa);
  auto file = ModelFile::open(path);
  if (!choice.ok() || !file.ok()) {
    ADD_FAILURE() << (choice.ok() ? file.error().message : choice.error().message);
    return nullptr;
  }
  auto out = std::make_unique<TestModel>();
  out->file = std::make_shared<const ModelFile>(std::move(file).value());
  out->pool = std::make_unique<ComputePool>(threads);
  auto model = Model::load(out->file, *choice->kernels, {"", out->pool.get()});
  if (!model.ok()) {
    ADD_FAILURE() << model.error().message;
    return nullptr;
  }
  out->model = std::move(model).value();
  return out;
}

// The instruction sets of this machine, the reference among them.
inline std::vector<std::string> machine_isas() {
  std::vector<std::string> names;
  auto choice = choose_isa("");
  if (!choice.ok()) return names;
  for (const IsaOption& option : choice->options) {
    if (option.available) names.push_back(option.name);
  }
  return names;
}

}  // namespace wok::test
