#include "server/auth.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace wok {

bool equal_constant_time(std::string_view a, std::string_view b) {
  volatile unsigned char difference = a.size() != b.size() ? 1 : 0;
  for (size_t i = 0; i < a.size() && !b.empty(); ++i) {
    difference = difference | static_cast<unsigned char>(a[i] ^ b[i % b.size()]);
  }
  return difference == 0;
}

bool is_authorized(std::string_view authorization, const std::vector<std::string>& keys) {
  constexpr std::string_view kScheme = "bearer ";
  const bool bearer = authorization.size() > kScheme.size() &&
                      std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                                 [](char want, char c) { return want == (c | 0x20); });
  if (!bearer) return false;
  authorization.remove_prefix(kScheme.size());
  bool found = false;
  for (const std::string& key : keys) found |= equal_constant_time(authorization, key);
  return found;
}

Result<std::vector<std::string>> read_key_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return io_error("cannot read the key file " + path + ": " + std::strerror(errno));
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    std::string key = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    if (key.find_first_of(" \t") != std::string::npos) {
      return invalid("the key file " + path + " has a line with spaces inside; one key a line");
    }
    keys.push_back(std::move(key));
  }
  if (keys.empty()) return invalid("the key file " + path + " holds no key; one key a line");
  return keys;
}

}  // namespace wok
