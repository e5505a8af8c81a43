#pragma once
// Expected failures as values. Every ErrorCode has one documented reaction; bugs go to check.h instead.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/check.h"

namespace shoal {

enum class ErrorCode {
  kTimeout,      // a deadline passed                          -> try elsewhere
  kBusy,         // no credit or queue full                    -> try elsewhere, back off
  kGone,         // the object named is not known any more     -> drop the claim
  kStale,        // an older session, epoch, version or lease  -> refuse, tell the sender
  kClosed,       // the microbatch or window is closed         -> drop
  kNoPeer,       // nobody in view serves it                   -> park, say so
  kUnreachable,  // no connection                              -> reconnect with backoff
  kMalformed,    // bytes that break the format                -> count, drop the message
  kTooLarge,     // beyond a stated limit                      -> count, drop the message
  kVersion,      // another protocol version                   -> refuse with both numbers
  kForeign,      // another run                                -> refuse
  kRefused,      // a place that is not given, or an identity that is not proved
  kNotAdmitted,  // our key, by whoever was dialled             -> end, with the key and whom to ask
  kNonFinite,    // NaN or infinity                            -> refuse before it is added, name the peer
  kCorrupt,      // checksum or signature does not fit         -> count, drop
  kInput,        // a file, key or argument of the user        -> message and exit
  kMissing,      // an input that does not exist               -> message and exit
  kIo,           // the disk or the system said no             -> message, exit or alarm
  kOutput,       // an output of the user that cannot be made  -> message and exit
  kUnsupported,  // a valid wish that this build cannot meet   -> message and exit
  kInterrupted,  // the user asked to stop
};

std::string_view name_of(ErrorCode code);

struct Error {
  ErrorCode code;
  std::string message;  // cause, object and, where a person can act, the remedy
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & {
    require();
    return std::get<0>(state_);
  }
  const T& value() const& {
    require();
    return std::get<0>(state_);
  }
  T&& value() && {
    require();
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const Error& error() const {
    SHOAL_CHECK(!ok());
    return std::get<1>(state_);
  }
  ErrorCode code() const { return error().code; }

 private:
  void require() const {
    if (!ok()) check_failed(__FILE__, __LINE__, "Result holds a value", std::get<1>(state_).message);
  }
  std::variant<T, Error> state_;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}
  static Status success() { return {}; }

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  // REQUIRES: !ok().
  const Error& error() const {
    SHOAL_CHECK(!ok());
    return *error_;
  }
  ErrorCode code() const { return error().code; }

 private:
  std::optional<Error> error_;
};

inline Error make_error(ErrorCode code, std::string message) { return Error{code, std::move(message)}; }

}  // namespace shoal

// Returns the error of a Status or Result expression from the enclosing function.
#define SHOAL_TRY(expression)                        \
  do {                                               \
    auto shoal_try_ = (expression);                  \
    if (!shoal_try_.ok()) return shoal_try_.error(); \
  } while (false)

#define SHOAL_CONCAT_(a, b) a##b
#define SHOAL_CONCAT(a, b) SHOAL_CONCAT_(a, b)
#define SHOAL_ASSIGN_(temporary, target, expression) \
  auto temporary = (expression);                     \
  if (!temporary.ok()) return temporary.error();     \
  target = std::move(temporary).value()
// SHOAL_ASSIGN(auto x, parse(y)): x is the value, or the enclosing function returns the error.
#define SHOAL_ASSIGN(target, expression) SHOAL_ASSIGN_(SHOAL_CONCAT(shoal_result_, __LINE__), target, expression)
