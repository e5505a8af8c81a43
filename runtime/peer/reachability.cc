#include "runtime/peer/reachability.h"

#include <algorithm>
#include <utility>

#include "common/formatted.h"

namespace shoal {

namespace {
constexpr const char* kOwnersHint =
    " HINT: whoever launched the run gives it a relay with --relay RATE, or with `shoal relay` on a server and --via.";
constexpr const char* kReachHint =
    " HINT: --advertise HOST:PORT names an address that others reach. Behind a firewall or NAT two TCP ports must be "
    "open, or forwarded: 4700 and 4701 with --listen 0.0.0.0:4700; under other numbers P and Q, --advertise HOST:P+Q";

}  // namespace

void Reachability::admitted() {
  ever_admitted_ = true;
  wait_told_ = false;
  why_.clear();
}

void Reachability::link_down() {
  answered_ = false;
  pause_.reset();
  next_query_.reset();
}

void Reachability::told_elsewhere(std::vector<std::string> mapped, std::string mapping) {
  mapping_ = std::move(mapping);
  if (std::exchange(mapped_, mapped) == mapped) return;
  answered_ = false;
  pause_.reset();
  next_query_ = TimePoint{};  // at once
}

std::optional<std::string> Reachability::unless_told(std::string line, const std::string& rest) {
  if (told_ == line) return std::nullopt;
  told_ = std::move(line);
  return told_ + rest;
}

std::optional<std::vector<std::string>> Reachability::on_others(const MemberList& list, const Member& self) {
  dialable_ = 0;
  for (const StageMembers& stage : list.stages)
    for (const Member& one : stage.members) dialable_ += one.peer != self.peer && one.whereabouts.dialable();
  std::vector<std::string> relays;
  if (self.whereabouts.reach != Reach::kDirect)
    for (const RelayPlace& relay : list.relays) relays.push_back(relay.address);
  relays = homes_of(self.peer, relays);
  if (homes_ == relays) return std::nullopt;
  return homes_ = std::move(relays);
}

std::optional<std::string> Reachability::on_list(const Whereabouts& ours) {
  found_ = ours;
  if (ours.reach != Reach::kDirect) return std::nullopt;  // the answer to our query says why
  const bool by_router = std::ranges::find_first_of(ours.addresses, mapped_) != ours.addresses.end();
  return unless_told("reach: direct (" + list_text(ours.addresses) + ")" + (by_router ? ", " + mapping_ : ""));
}

bool Reachability::take_query(TimePoint now, const Whereabouts& told) {
  if (!found_) return false;
  const auto answers = [this](const std::string& address) {
    return std::find(found_->addresses.begin(), found_->addresses.end(), address) != found_->addresses.end();
  };
  const bool everywhere = std::all_of(told.addresses.begin(), told.addresses.end(), answers);
  if (found_->reach == Reach::kDirect && (answered_ || everywhere)) return false;
  if (!next_query_) next_query_ = now + kAskSoon;
  if (now < *next_query_) return false;
  next_query_ = now + kAskSoon;
  return true;
}

std::optional<std::string> Reachability::answered(TimePoint now, const ReachAnswer& answer) {
  answered_ = true;
  next_query_ = now + pause_.next();
  if (answer.reach == Reach::kDirect) return std::nullopt;
  std::string line = "reach: " + std::string(name_of(answer.reach)) + " (" + answer.reason +
                     (mapping_.empty() ? "" : "; " + mapping_) +
                     "): " + (answer.reach == Reach::kLocal ? "its neighbours alone dial it" : "nobody dials it");
  if (homes_.empty())
    return unless_told(line + ", and the run has no relay: it works with members that can be dialled alone.",
                       std::string(kOwnersHint) + kReachHint);
  line += ". It takes part all the same, and is called at " + list_text(homes_);
  return unless_told(std::move(line), ", and dials " + std::to_string(dialable_) + " members." + kReachHint);
}

std::optional<std::string> Reachability::kept_out(const std::string& what) {
  if (std::exchange(why_, what) == what) return std::nullopt;
  return what + "; not admitted, asking again";
}

// What it says counts down, so it is another text each time.
std::optional<std::string> Reachability::told_to_wait(const std::string& what) {
  if (std::exchange(wait_told_, true)) return std::nullopt;
  return what + "; not admitted yet, asking again";
}

}  // namespace shoal
