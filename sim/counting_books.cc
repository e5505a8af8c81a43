#include "sim/counting_books.h"

#include <sstream>

namespace shoal {

namespace {
constexpr std::string_view kRestListed = "the run ended";  // runtime/trainer/launch_end.cc
}

std::string text_of(const Token& token) {
  std::ostringstream out;
  out << token;
  return out.str();
}

void GradientSum::add(const MicrobatchId& microbatch, StageId stage) {
  tag += count_tag(microbatch);
  const IntegerGradient gradient = integer_gradient(microbatch, stage);
  for (std::size_t i = 0; i < gradient.size(); ++i) values[i] += static_cast<double>(gradient[i]);
}

void CountingBooks::read(const std::vector<EventRecord>& events) {
  for (; read_ < events.size(); ++read_) {
    const EventRecord& event = events[read_];
    if (event.event == "commit" && event.microbatch && event.tokens) {
      read_commit(event);
    } else if (event.event == "round_commit" && event.secured && event.stage && event.version) {
      read_round(event);
    } else if (event.event == "listed" && event.token) {
      list(*event.token, event.cause);
    } else if (event.event == "session_over" && event.about) {
      over_.insert(*event.about);
    }
  }
}

void CountingBooks::read_commit(const EventRecord& event) {
  const auto [it, fresh] = committed_.emplace(*event.microbatch, *event.tokens);
  if (!fresh && it->second != *event.tokens)
    broken_.push_back("microbatch " + std::to_string(event.microbatch->serial) + " is logged twice");
  for (std::size_t k = 0; k < event.tokens->size(); ++k)
    winners_.insert_or_assign((*event.tokens)[k], Winner{*event.microbatch, StageId(static_cast<std::uint16_t>(k))});
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

void CountingBooks::secure(const Token& token, StageId stage, Version version, GradientSum& sum) {
  if (!secured_.emplace(token, version).second)
    broken_.push_back("token " + text_of(token) + " is secured by two rounds");
  if (listed_.contains(token)) broken_.push_back("token " + text_of(token) + " is secured and listed as lost");
  if (const Winner* won = winner(token); won != nullptr && won->stage == stage)
    sum.add(won->microbatch, stage);
  else
    broken_.push_back("stage " + std::to_string(stage.value) + ": a round secured token " + text_of(token) +
                      ", which no log line names there");
}

void CountingBooks::list(const Token& token, std::string_view cause) {
  listed_.emplace(token, cause);
  if (secured_.contains(token)) broken_.push_back("token " + text_of(token) + " is secured and listed as lost");
}

const std::string* CountingBooks::lost(const Token& token) const {
  const auto it = listed_.find(token);
  return it == listed_.end() || it->second == kRestListed ? nullptr : &it->second;
}

const CountingBooks::Winner* CountingBooks::winner(const Token& token) const {
  const auto it = winners_.find(token);
  return it == winners_.end() ? nullptr : &it->second;
}

std::optional<Version> CountingBooks::secured_at(const Token& token) const {
  const auto it = secured_.find(token);
  return it == secured_.end() ? std::nullopt : std::optional(it->second);
}

GradientSum CountingBooks::secured_up_to(StageId stage, Version version) const {
  const auto versions = anchors_.find(stage);
  if (versions == anchors_.end()) return {};
  const auto after = versions->second.upper_bound(version);
  return after == versions->second.begin() ? GradientSum{} : std::prev(after)->second;
}

}  // namespace shoal
