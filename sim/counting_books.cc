#include "sim/counting_books.h"

#include <sstream>

namespace shoal {

namespace {
constexpr std::string_view kRestLost = "the run ended";  // runtime/trainer/launch_end.cc
}

std::string text_of(const EntryName& entry_name) {
  std::ostringstream out;
  out << entry_name;
  return out.str();
}

void GradientSum::add(const MicrobatchId& microbatch, StageId stage) {
  tag += count_tag(microbatch);
  const IntegerGradient gradient = integer_gradient(microbatch, stage);
  for (std::size_t i = 0; i < gradient.size(); ++i) values[i] += static_cast<double>(gradient[i]);
}

void CountingBooks::read(const std::vector<SimEvent>& events) {
  for (; read_ < events.size(); ++read_) {
    const EventRecord& event = events[read_];
    if (event.event == EventName::kCommit && event.microbatch && event.entries) {
      read_commit(event);
    } else if (event.event == EventName::kRoundCommit && event.secured && event.stage && event.version) {
      read_round(event);
    } else if (event.event == EventName::kLost && event.entry_name) {
      list(*event.entry_name, event.cause);
    } else if (event.event == EventName::kSessionOver && event.about) {
      over_.insert(*event.about);
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

void CountingBooks::read_round(const EventRecord& event) {
  auto& versions = anchors_[*event.stage];
  if (versions.contains(*event.version)) return;  // said again by a resumed launch
  GradientSum sum = versions.empty() ? GradientSum{} : versions.rbegin()->second;
  for (const Secured& member : *event.secured)
    for (const std::uint64_t serial : member.serials)
      secure({member.session, serial}, *event.stage, *event.version, sum);
  versions.emplace(*event.version, sum);
}

void CountingBooks::secure(const EntryName& entry_name, StageId stage, Version version, GradientSum& sum) {
  if (!secured_.emplace(entry_name, version).second)
    broken_.push_back("entry " + text_of(entry_name) + " is secured by two rounds");
  if (lost_.contains(entry_name)) broken_.push_back("entry " + text_of(entry_name) + " is secured and lost");
  if (const Winner* won = winner(entry_name); won != nullptr && won->stage == stage)
    sum.add(won->microbatch, stage);
  else
    broken_.push_back("stage " + std::to_string(stage.value) + ": a round secured entry " + text_of(entry_name) +
                      ", which no log line names there");
}

void CountingBooks::list(const EntryName& entry_name, std::string_view cause) {
  lost_.emplace(entry_name, cause);
  if (secured_.contains(entry_name)) broken_.push_back("entry " + text_of(entry_name) + " is secured and lost");
}

const std::string* CountingBooks::cause_of_loss(const EntryName& entry_name) const {
  const auto it = lost_.find(entry_name);
  return it == lost_.end() || it->second == kRestLost ? nullptr : &it->second;
}

std::vector<EntryName> CountingBooks::lost_as_rest() const {
  std::vector<EntryName> rest;
  for (const auto& [entry_name, cause] : lost_)
    if (cause == kRestLost) rest.push_back(entry_name);
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
