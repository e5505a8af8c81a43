#include "sim/counting_books.h"

#include <sstream>

#include "events/lost_causes.h"
#include "events/session_end.h"

namespace shoal {

namespace {
// What an ended session holds is named lost at once; the run's end may find one that ended while its logs were synced.
constexpr Duration kNamedWithin = 10s;
// A joiner goes by the list that was told last: what changes within a second of the launching process is told together.
// So many of its lines, one a second while it is not frozen.
constexpr std::uint64_t kToldWithin = 3;
}  // namespace

std::string text_of(const EntryName& entry_name) {
  std::ostringstream out;
  out << entry_name;
  return out.str();
}

void GradientSum::add(const MicrobatchId& microbatch, StageId stage, WeightStamp stamp) {
  tag += count_tag(microbatch);
  const IntegerGradient gradient = integer_gradient(microbatch, stage, stamp);
  for (std::size_t i = 0; i < gradient.size(); ++i) values[i] += static_cast<double>(gradient[i]);
}

void CountingBooks::read(const std::vector<SimEvent>& events) {
  for (; read_ < events.size(); ++read_) {
    const SimEvent& event = events[read_];
    if (event.event == EventKind::kCommit && event.microbatch && event.entries) {
      read_commit(event);
    } else if (event.event == EventKind::kCounted && event.entry_name && event.stamp) {
      stamps_.insert_or_assign(*event.entry_name, *event.stamp);
    } else if (event.event == EventKind::kRoundOpen && event.stage && event.round && event.members) {
      opened_.insert_or_assign({*event.stage, *event.round}, *event.members);
    } else if (event.event == EventKind::kRoundCommit && event.secured && event.stage && event.version) {
      read_round(event);
      note_made(*event.stage, *event.version, event.writer);
    } else if (event.event == EventKind::kBytes) {
      launch_seconds_ += event.writer.peer_tag == launch_;
    } else if (event.event == EventKind::kRestored && event.stage && event.version && event.back_to) {
      go_back(*event.stage, *event.version, *event.back_to);
      note_made(*event.stage, *event.version, event.writer);
    } else if (event.event == EventKind::kLost && event.entry_name) {
      list(*event.entry_name, event.cause, event.at);
    } else if (event.event == EventKind::kMember && event.state == "joined" && event.about && event.stage) {
      read_joined(event);
    } else if (event.event == EventKind::kServing && event.version) {
      read_serving(event);
    } else if (event.event == EventKind::kSessionOver && event.about) {
      over_.emplace(*event.about, event.at);  // said again by a resumed launch
      if (!event.cause.starts_with(kLeft)) fenced_.insert(*event.about);
    }
  }
}

void CountingBooks::read_commit(const EventRecord& event) {
  const auto [it, fresh] = committed_.emplace(*event.microbatch, *event.entries);
  if (!fresh && it->second != *event.entries)
    broken_.push_back("microbatch " + std::to_string(event.microbatch->serial) + " is logged twice");
  for (std::size_t k = 0; k < event.entries->size(); ++k)
    winners_.insert_or_assign((*event.entries)[k], Winner{*event.microbatch, StageId(static_cast<std::uint16_t>(k))});
}

void CountingBooks::note_made(StageId stage, Version version, const Session& launch) {
  launch_ = launch.peer_tag;
  made_[stage].emplace(version, launch_seconds_);
}

void CountingBooks::read_joined(const EventRecord& event) {
  Version told{0};
  for (const auto& [version, second] : made_[*event.stage])
    if (launch_seconds_ - second >= kToldWithin) told = version;
  admitted_.emplace(*event.about, told);
}

void CountingBooks::read_serving(const SimEvent& event) {
  const auto admitted = admitted_.find(event.writer);
  if (admitted == admitted_.end() || *event.version >= admitted->second) return;
  broken_.push_back("session " + short_name(event.writer) + " serves at version " +
                    std::to_string(event.version->value) + ", and members were told of version " +
                    std::to_string(admitted->second.value) + " before it was admitted");
}

void CountingBooks::read_round(const EventRecord& event) {
  auto& versions = anchors_[*event.stage];
  if (versions.contains(*event.version)) return;  // said again by a resumed launch
  check_contributions(event);
  GradientSum sum = versions.empty() ? GradientSum{} : versions.rbegin()->second;
  for (const Secured& member : *event.secured)
    for (const std::uint64_t serial : member.serials)
      secure({member.session, serial}, *event.stage, *event.version, sum);
  versions.emplace(*event.version, sum);
}

// What the later rounds secured is in no anchor any more; it stays decided.
void CountingBooks::go_back(StageId stage, Version made, Version back_to) {
  auto& versions = anchors_[stage];
  if (versions.contains(made)) return;  // said again by a resumed launch
  if (versions.empty() || versions.rbegin()->first.value + 1 != made.value || !versions.contains(back_to))
    broken_.push_back("stage " + std::to_string(stage.value) + " goes back to version " +
                      std::to_string(back_to.value) + ", which it did not have, or past its newest");
  versions.emplace(made, secured_up_to(stage, back_to));
}

// A commit names all members of its round, also who brought nothing: their parts are in the sum.
void CountingBooks::check_contributions(const EventRecord& commit) {
  if (!commit.round) return;
  const auto opened = opened_.find({*commit.stage, *commit.round});
  if (opened == opened_.end() || commit.secured->size() == opened->second) return;
  broken_.push_back("stage " + std::to_string(commit.stage->value) + ": round " + std::to_string(commit.round->value) +
                    " was opened with " + std::to_string(opened->second) + " members and committed with " +
                    std::to_string(commit.secured->size()) + " contributions");
}

void CountingBooks::secure(const EntryName& entry_name, StageId stage, Version version, GradientSum& sum) {
  if (!secured_.emplace(entry_name, version).second)
    broken_.push_back("entry " + text_of(entry_name) + " is secured by two rounds");
  if (lost_.contains(entry_name)) broken_.push_back("entry " + text_of(entry_name) + " is secured and lost");
  const Winner* won = winner(entry_name);
  const auto stamp = stamps_.find(entry_name);
  const std::string what = "stage " + std::to_string(stage.value) + ": a round secured entry " + text_of(entry_name);
  if (won == nullptr || won->stage != stage)
    broken_.push_back(what + ", which no log line names there");
  else if (stamp == stamps_.end())
    broken_.push_back(what + ", which nobody counted");
  else
    sum.add(won->microbatch, stage, stamp->second);
}

void CountingBooks::list(const EntryName& entry_name, std::string_view cause, TimePoint at) {
  lost_.emplace(entry_name, cause);
  if (const auto over = over_.find(entry_name.session);
      is_lost_by_end(cause) && over != over_.end() && at - over->second > kNamedWithin)
    broken_.push_back("entry " + text_of(entry_name) +
                      " is lost as the rest, and its session had ended long before: nobody followed it");
  if (secured_.contains(entry_name)) broken_.push_back("entry " + text_of(entry_name) + " is secured and lost");
}

const std::string* CountingBooks::cause_of_loss(const EntryName& entry_name) const {
  const auto it = lost_.find(entry_name);
  return it == lost_.end() || is_lost_by_end(it->second) ? nullptr : &it->second;
}

std::vector<EntryName> CountingBooks::lost_as_rest() const {
  std::vector<EntryName> rest;
  for (const auto& [entry_name, cause] : lost_)
    if (cause == kLostAtEnd) rest.push_back(entry_name);
  return rest;
}

const CountingBooks::Winner* CountingBooks::winner(const EntryName& entry_name) const {
  const auto it = winners_.find(entry_name);
  return it == winners_.end() ? nullptr : &it->second;
}

std::optional<Version> CountingBooks::secured_at(const EntryName& entry_name) const {
  const auto it = secured_.find(entry_name);
  return it == secured_.end() ? std::nullopt : std::optional(it->second);
}

GradientSum CountingBooks::secured_up_to(StageId stage, Version version) const {
  const auto versions = anchors_.find(stage);
  if (versions == anchors_.end()) return {};
  const auto after = versions->second.upper_bound(version);
  return after == versions->second.begin() ? GradientSum{} : std::prev(after)->second;
}

}  // namespace shoal
