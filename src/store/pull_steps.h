// What the pulls of known models and of hubs' models have in common.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/pull.h"

namespace wok::store {

bool pull_cancelled(const PullOptions& options);
Error pull_cancelled_error();
void report(const PullOptions& options, PullProgress::Stage stage, uint64_t done, uint64_t total);

Result<FileLock> wait_for_lock(const Store& store, const PullOptions& options);

// With the lock held nothing in tmp/ is in use: all of it is left over from killed pulls, and goes,
// but for partial files that a pull may still go on with.
void clean_leftovers(const Store& store, int64_t now_unix_s);

// True when the blob is there with the right bytes: of a pull that died before its manifest, or of
// another model.
bool blob_is_good(const Store& store, std::string_view sha256_hex, uint64_t bytes);

// "2025-03-01T12:00:00Z"
std::string utc_time(int64_t unix_s);

// By way of `work`, a folder on the store's file system.
Status write_manifest(const Store& store, const Manifest& manifest, const std::string& work);

}  // namespace wok::store
