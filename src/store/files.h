// The few file operations the store is built from. Whatever is visible under its final name is
// complete and on disk: files are written elsewhere, synced, and renamed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace wok::store {

// "cannot write /x/y: No space left on device (free some space, or …)".
Error system_error(std::string_view doing, const std::string& path, int error_number);

// A file being written; closed and, unless kept by commit(), left to whoever owns its folder.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  ~NewFile();

  Status write(std::string_view bytes);
  // Syncs, closes, renames to `target` and syncs the target's folder.
  Status commit(const std::string& target);

 private:
  NewFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
};

// mkdir -p. Errors say which folder and which option moves the cache elsewhere.
Status make_folders(const std::string& path);

// A folder of random name below `parent`, removed with all it holds by the destructor.
class TempFolder {
 public:
  static Result<TempFolder> create(const std::string& parent, const std::string& prefix);
  TempFolder(TempFolder&& other) noexcept;
  TempFolder& operator=(TempFolder&& other) = delete;
  ~TempFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// An exclusive flock() on a file, given back by the destructor and by the kernel when the process
// dies. The descriptor is close-on-exec, so no child inherits the lock.
class FileLock {
 public:
  // ok with held() == false: another process (or another FileLock) has it.
  static Result<FileLock> try_lock(const std::string& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();
  bool held() const { return fd_ >= 0; }

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// Bytes of all regular files below a folder, as far as they can be read; races are ignored.
uint64_t folder_bytes(const std::string& path);

// Bytes an unprivileged writer may still put on the file system of `path`.
Result<uint64_t> free_bytes(const std::string& path);

std::string human_bytes(uint64_t bytes);

}  // namespace wok::store
