#include "base/short_slices.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

namespace wok {
namespace {

// What the kernel says of the calling thread, "" where it says nothing.
std::string slice() {
  std::ifstream file("/proc/thread-self/sched");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("se.slice")) return line.substr(line.find_last_of(' ') + 1);
  }
  return "";
}

TEST(ShortSlices, AreTheCallersAndThoseItStartsOnly) {
  utsname system{};
  int major = 0, minor = 0;
  ASSERT_EQ(uname(&system), 0);
  ASSERT_EQ(std::sscanf(system.release, "%d.%d", &major, &minor), 2);
  const std::string before = slice();
  std::string own, childs;
  std::thread([&] {
    ask_for_short_slices();
    own = slice();
    std::thread([&] { childs = slice(); }).join();
  }).join();
  EXPECT_EQ(slice(), before);
  if (major * 100 + minor < 612 || before.empty()) GTEST_SKIP() << "a kernel without them";
  EXPECT_EQ(own, "100000");
  EXPECT_EQ(childs, own);
}

}  // namespace
}  // namespace wok
