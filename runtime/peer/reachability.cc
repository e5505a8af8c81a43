#include "runtime/peer/reachability.h"

#include <utility>

namespace shoal {

namespace {
constexpr const char* kHint =
    "HINT: --advertise HOST:PORT names an address that others reach. Behind a firewall or NAT two TCP ports must be "
    "open, or forwarded under the "
    "same numbers: 4700 and 4701 with --listen 0.0.0.0:4700";
}  // namespace

void Reachability::admitted() {
  ever_admitted_ = true;
  wait_told_ = false;
  undialled_since_.reset();
}

std::optional<std::string> Reachability::undialled(TimePoint now, const std::string& what) {
  std::string why = what;
  const bool told = undialled_since_ && why == why_;
  if (!undialled_since_) undialled_since_ = now;
  why_ = std::move(why);
  if (told) return std::nullopt;
  return why_ + "; not admitted, asking again. " + kHint;
}

// What it says counts down, so it is another text each time.
std::optional<std::string> Reachability::told_to_wait(const std::string& what) {
  undialled_since_.reset();
  if (std::exchange(wait_told_, true)) return std::nullopt;
  return what + "; not admitted yet, asking again";
}

Status Reachability::check(TimePoint now) const {
  const Duration limit = ever_admitted_ ? patience_.returning : patience_.first;
  if (!undialled_since_ || now - *undialled_since_ <= limit) return Status::success();
  return make_error(ErrorCode::kUnreachable,
                    why_ + "; giving up after " + std::to_string(static_cast<int>(seconds_of(limit))) + " s. " + kHint);
}

}  // namespace shoal
