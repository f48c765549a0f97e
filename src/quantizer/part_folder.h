// A folder in the making, "OUT.part": held by one process, taken up again by a later run that would
// write the same.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace wok {

class PartFolder {
 public:
  // plan: what the contents depend on. A folder that was left by another plan is emptied first.
  // Errors: kInvalid where `out` exists; kBusy where another process holds it; kIo.
  static Result<PartFolder> open(const std::string& out, const std::string& plan);
  PartFolder(PartFolder&& other) noexcept;
  PartFolder& operator=(PartFolder&&) = delete;
  ~PartFolder();

  std::string path(const std::string& name) const { return part_ + "/" + name; }
  bool has(const std::string& name) const;
  // Removes what only the making needed and gives the folder its name. Errors: kIo.
  Status finish();

 private:
  PartFolder(std::string out, int lock)
      : out_(std::move(out)), part_(out_ + ".part"), lock_(lock) {}
  std::string out_, part_;
  int lock_ = -1;
};

}  // namespace wok
