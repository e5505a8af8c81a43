#include "runtime/launch/dial_back.h"

#include <algorithm>
#include <utility>

namespace shoal {

namespace {
constexpr Duration kLook = 20ms;  // for the next dial that may begin
const Whereabouts kNowhere{{}, Reach::kNone};

std::string not_dialled(const Whereabouts& told, const DialOrigin& origin) {
  if (!told.dialable()) return "no address was told";
  return told.addresses.front() + " is not dialled, because the request comes from " +
         (origin.host.empty() ? "elsewhere" : origin.host) +
         (origin.paid ? ", and a private address is dialled for its own network alone" : "");
}
}  // namespace

DialBack::DialBack(Transport& transport, EventLoop& loop, std::function<void(const Verdict&)> decided)
    : transport_(transport), loop_(loop), decided_(std::move(decided)) {}

Whereabouts DialBack::Trial::found() const {
  Whereabouts found;
  for (const std::string& address : dialable.addresses)
    if (answered.contains(address)) found.addresses.push_back(address);
  found.reach = reach_at(found);
  return found;
}

std::string DialBack::Trial::reasons() const {
  return why.empty() && answered.empty() ? dialable.addresses.front() + " has not answered yet" : why;
}

void DialBack::check(const Remote& from, const Whereabouts& given, const DialOrigin& origin,
                     std::optional<JoinRequest> request) {
  const Whereabouts told = usable(given);  // no more than that is kept of a stranger
  Trial* const trial = trial_of(from.peer);
  if (trial != nullptr && (trial->busy() || loop_.now() < trial->next_at)) {
    // The repeat of a request that was answered, or a new session: nothing is dialled for it.
    const bool same = trial->told == told;
    if (request && (trial->said || !trial->request))  // also beside a query of the same key
      decide_later({from, std::move(request), same ? trial->found() : kNowhere,
                    same ? trial->reasons() : "other addresses of it were dialled a moment ago", true});
    return;
  }
  Whereabouts dialable = dialable_for(told, origin);
  if (!dialable.dialable()) return decide_later({from, std::move(request), kNowhere, not_dialled(told, origin), true});
  if (trial == nullptr || line_.size() >= kWaitingMax)
    return decide_later({from, std::move(request), kNowhere, "too many peers are dialled just now", true});
  *trial = {.from = from,
            .request = std::move(request),
            .told = told,
            .dialable = std::move(dialable),
            .in_line = true,
            .number = ++numbers_};
  line_.push_back(from.peer);
  if (trial->request)
    loop_.after(kAnswerTime, lifetime_.guard([this, peer = from.peer, number = trial->number] {
      const auto late = trials_.find(peer);
      if (late != trials_.end() && late->second.number == number && !late->second.said) decide(late->second);
    }));
  dial_next();
}

void DialBack::decide(Trial& trial) {
  trial.said = true;
  decided_({trial.from, std::exchange(trial.request, {}), trial.found(), trial.reasons(), !trial.busy()});
}

void DialBack::decide_later(Verdict verdict) {
  loop_.post(lifetime_.guard([this, verdict = std::move(verdict)] { decided_(verdict); }));
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
    const PeerId peer = line_.front();
    line_.pop_front();
    Trial& trial = trials_.at(peer);
    trial.in_line = false;
    trial.under_way = true;
    trial.open = trial.dialable.addresses.size();
    ++under_way_;
    transport_.try_dialling(peer, trial.dialable,
                            lifetime_.guard([this, peer](const std::string& address, const Status& answered) {
                              on_tried(peer, address, answered);
                            }));
  }
}

void DialBack::on_tried(const PeerId& peer, const std::string& address, const Status& answered) {
  Trial& trial = trials_.at(peer);
  if (answered.ok())
    trial.answered.insert(address);
  else
    trial.why += (trial.why.empty() ? "" : "; ") + answered.error().message;
  if (--trial.open > 0) {
    if (trial.request && trial.found().reach == Reach::kDirect) decide(trial);  // the others are no reason to wait
    return;
  }
  --under_way_;
  trial.under_way = false;
  trial.next_at = loop_.now() + kPause;
  decide(trial);
  dial_next();
}

}  // namespace shoal
