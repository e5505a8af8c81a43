#include "common/result.h"

namespace shoal {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kBusy:
      return "busy";
    case ErrorCode::kGone:
      return "gone";
    case ErrorCode::kStale:
      return "stale";
    case ErrorCode::kClosed:
      return "closed";
    case ErrorCode::kNoPeer:
      return "no_peer";
    case ErrorCode::kUnreachable:
      return "unreachable";
    case ErrorCode::kMalformed:
      return "malformed";
    case ErrorCode::kTooLarge:
      return "too_large";
    case ErrorCode::kVersion:
      return "version";
    case ErrorCode::kForeign:
      return "foreign";
    case ErrorCode::kRefused:
      return "refused";
    case ErrorCode::kNotAdmitted:
      return "not_admitted";
    case ErrorCode::kNonFinite:
      return "non_finite";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kInput:
      return "input";
    case ErrorCode::kMissing:
      return "missing";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kOutput:
      return "output";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

}  // namespace shoal
