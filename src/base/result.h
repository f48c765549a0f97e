// Result<T>: what a function returns when the world (files, sockets, users) can make it fail.
// An Error's message says what was wrong, where, and what to do. Our own bugs are WOK_CHECKs.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace wok {

enum class ErrorKind {
  kInvalid,      // the input is malformed or contradicts itself
  kNotFound,     // a file, model or key that is not there
  kUnsupported,  // well-formed, but wok does not do it
  kTooLarge,     // can never fit the limits in force
  kBusy,         // could succeed later (queue full, port in use)
  kIo,           // the operating system said no
  kNoMemory,
  kCancelled,
};

struct Error {
  ErrorKind kind = ErrorKind::kInvalid;
  std::string message;
};

inline Error invalid(std::string message) {
  return {ErrorKind::kInvalid, std::move(message)};
}
inline Error not_found(std::string message) {
  return {ErrorKind::kNotFound, std::move(message)};
}
inline Error unsupported(std::string message) {
  return {ErrorKind::kUnsupported, std::move(message)};
}
inline Error too_large(std::string message) {
  return {ErrorKind::kTooLarge, std::move(message)};
}
inline Error io_error(std::string message) {
  return {ErrorKind::kIo, std::move(message)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(runtime/explicit)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    WOK_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  const T& value() const& {
    WOK_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  T&& value() && {
    WOK_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    WOK_CHECK(!ok(), "error() of a successful Result");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

#define WOK_CONCAT_INNER(a, b) a##b
#define WOK_CONCAT(a, b) WOK_CONCAT_INNER(a, b)

// WOK_TRY(x, f()): declares x as f()'s value, or returns f()'s error from this function.
#define WOK_TRY(name, expr) WOK_TRY_INNER(name, expr, WOK_CONCAT(wok_try_, __LINE__))
#define WOK_TRY_INNER(name, expr, tmp) \
  auto tmp = (expr);                   \
  if (!tmp.ok()) return tmp.error();   \
  auto name = std::move(tmp).value()

// WOK_RETURN_IF_ERROR(f()): for a Status whose value carries nothing.
#define WOK_RETURN_IF_ERROR(expr)                     \
  do {                                                \
    if (auto wok_status = (expr); !wok_status.ok()) { \
      return wok_status.error();                      \
    }                                                 \
  } while (0)

}  // namespace wok
