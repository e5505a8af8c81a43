#include "runtime/launch/dial_back.h"

#include <algorithm>
#include <utility>

#include "transport/dial_trials.h"

namespace shoal {

namespace {
constexpr Duration kLook = 20ms;  // for the next dial that may begin
}  // namespace

DialBack::DialBack(Transport& transport, EventLoop& loop, std::function<void(const Verdict&)> decided)
    : transport_(transport), loop_(loop), decided_(std::move(decided)) {}

void DialBack::check(const Remote& from, const JoinRequest& request, const DialOrigin& origin) {
  Trial* trial = trial_of(from.peer);
  if (trial == nullptr || trial->busy()) return;
  JoinRequest asked = request;
  asked.whereabouts = usable(std::move(asked.whereabouts));  // no more than that is kept of a stranger
  if (loop_.now() < trial->next_at) {
    // The repeat of a request that was answered yes, or a new session: nothing is dialled for it. Without an address
    // none was: a joiner that was refused may not come back without any.
    if (trial->failures > 0 || !asked.whereabouts.dialable() || trial->whereabouts != asked.whereabouts) return;
    return loop_.post(lifetime_.guard([this, from, asked] { decided_({from, asked, Status::success(), 0}); }));
  }
  Whereabouts dialable = dialable_for(asked.whereabouts, origin);
  if (!dialable.dialable() && asked.whereabouts.dialable()) return refuse_to_dial(*trial, from, asked, origin);
  if (line_.size() >= kWaitingMax) return;
  trial->in_line = true;
  line_.push_back({from, std::move(asked), std::move(dialable)});
  dial_next();
}

void DialBack::refuse_to_dial(Trial& trial, const Remote& from, const JoinRequest& asked, const DialOrigin& origin) {
  trial.whereabouts = {};  // what is repeated is not taken for a yes
  trial.next_at = loop_.now() + kPause;
  const std::string why = asked.whereabouts.addresses.front() + " is not dialled, because the request comes from " +
                          (origin.host.empty() ? "elsewhere" : origin.host) +
                          (origin.paid ? ", and a private address is dialled for its own network alone"
                                       : "; it is dialled once " + std::to_string(kDialPaymentBytes >> 10) +
                                             " KiB came with a request, as they do with the next one");
  loop_.post(lifetime_.guard([this, from, asked, why] {
    decided_({from, asked, make_error(ErrorCode::kUnreachable, why), 0});
  }));
}

// A peer that is in line or under way keeps its place; of the others the oldest gives way.
DialBack::Trial* DialBack::trial_of(const PeerId& peer) {
  if (const auto found = trials_.find(peer); found != trials_.end()) return &found->second;
  if (trials_.size() >= kRememberedMax) {
    const auto oldest = std::min_element(trials_.begin(), trials_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.busy(), a.second.next_at) < std::pair(b.second.busy(), b.second.next_at);
    });
    if (oldest->second.busy() || loop_.now() < oldest->second.next_at) return nullptr;
    trials_.erase(oldest);
  }
  return &trials_[peer];
}

void DialBack::dial_next() {
  while (!line_.empty() && under_way_ < kAtOnce) {
    if (!dials_.take(loop_.now())) {
      if (std::exchange(timer_, true)) return;
      loop_.after(kLook, lifetime_.guard([this] {
        timer_ = false;
        dial_next();
      }));
      return;
    }
    Waiting next = std::move(line_.front());
    line_.pop_front();
    Trial& trial = trials_.at(next.from.peer);
    trial.in_line = false;
    trial.under_way = true;
    trial.whereabouts = next.request.whereabouts;
    ++under_way_;
    transport_.try_dialling(next.from.peer, next.dialable,
                            lifetime_.guard([this, from = next.from, request = next.request](const Status& reached) {
                              on_outcome(from, request, reached);
                            }));
  }
}

void DialBack::on_outcome(const Remote& from, const JoinRequest& request, const Status& reached) {
  --under_way_;
  Trial& trial = trials_.at(from.peer);
  trial.under_way = false;
  trial.failures = reached.ok() ? 0 : trial.failures + 1;
  trial.next_at = loop_.now() + kPause;
  decided_({from, request, reached, trial.failures});
  dial_next();
}

}  // namespace shoal
