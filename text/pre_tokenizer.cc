#include "text/pre_tokenizer.h"

#include <algorithm>

#include "text/normaliser.h"

namespace shoal {
namespace {

struct Part {
  TextRange range;
  bool found;
};

// All of `text`, in order: what the pattern finds and what stands between.
std::vector<Part> parts_of(const SplitStep& step, std::string_view text, MatchRoom& room) {
  std::vector<Part> parts;
  std::size_t done = 0;
  while (const auto match = step.pattern.find(text, done, room)) {
    if (match->begin > done) parts.push_back({{done, match->begin}, step.inverted});
    parts.push_back({*match, !step.inverted});
    done = match->end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, step.inverted});
  return parts;
}

// Joins each part that `joins` says to the one before it.
template <class Joins>
std::vector<Part> joined(const std::vector<Part>& parts, Joins joins) {
  std::vector<Part> out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!out.empty() && joins(i)) {
      out.back().range.end = parts[i].range.end;
    } else {
      out.push_back(parts[i]);
    }
  }
  return out;
}

// A part that was found merges with the one before it, unless that was found, too.
std::vector<Part> merged_with_previous(const std::vector<Part>& parts) {
  return joined(parts, [&](std::size_t i) { return parts[i].found && !parts[i - 1].found; });
}

std::vector<Part> merged_with_next(const std::vector<Part>& parts) {
  return joined(parts, [&](std::size_t i) { return !parts[i].found && parts[i - 1].found; });
}

std::vector<Part> contiguous(const std::vector<Part>& parts) {
  return joined(parts, [&](std::size_t i) { return parts[i].found == parts[i - 1].found; });
}

std::vector<Part> cut_parts(const SplitStep& step, std::string_view text, MatchRoom& room) {
  std::vector<Part> parts = parts_of(step, text, room);
  switch (step.behaviour) {
    case SplitBehaviour::kMergedWithPrevious:
      return merged_with_previous(parts);
    case SplitBehaviour::kMergedWithNext:
      return merged_with_next(parts);
    case SplitBehaviour::kContiguous:
      return contiguous(parts);
    case SplitBehaviour::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.found; });
      return parts;
    case SplitBehaviour::kIsolated:
      break;
  }
  return parts;
}

}  // namespace

// One call: a piece that leaves a step goes through the next ones before the step goes on.
struct PreTokenizer::Run {
  std::span<const PreStep> steps;
  MatchRoom& room;
  const Take& take;
  const bool& over;  // no more pieces are wanted

  void piece(std::size_t step, std::string_view text, bool at_start) const {
    if (text.empty() || over) return;
    if (step == steps.size()) return take(text);
    std::visit([&](const auto& kind) { apply(kind, step + 1, text, at_start); }, steps[step]);
  }

  void apply(const SplitStep& step, std::size_t next, std::string_view text, bool at_start) const {
    if (step.behaviour == SplitBehaviour::kIsolated) return isolate(step, next, text, at_start);
    for (const Part& part : cut_parts(step, text, room)) {
      piece(next, text.substr(part.range.begin, part.range.end - part.range.begin), at_start && part.range.begin == 0);
    }
  }

  // The usual case, without a list.
  void isolate(const SplitStep& step, std::size_t next, std::string_view text, bool at_start) const {
    std::size_t done = 0;
    while (const auto match = over ? std::nullopt : step.pattern.find(text, done, room)) {
      piece(next, text.substr(done, match->begin - done), at_start && done == 0);
      piece(next, text.substr(match->begin, match->end - match->begin), at_start && match->begin == 0);
      done = match->end;
    }
    piece(next, text.substr(done), at_start && done == 0);
  }

  void apply(const PrefixSpaceStep&, std::size_t next, std::string_view text, bool at_start) const {
    if (text.starts_with(' ')) return piece(next, text, at_start);
    piece(next, " " + std::string(text), at_start);
  }

  void apply(const MarkSpacesStep& step, std::size_t next, std::string_view text, bool at_start) const {
    std::string marked = replaced(text, " ", step.mark);
    const bool wanted =
        step.prefix == MarkSpacesStep::Prefix::kAlways || (step.prefix == MarkSpacesStep::Prefix::kFirst && at_start);
    if (wanted && !marked.starts_with(step.mark)) marked.insert(0, step.mark);
    piece(next, marked, at_start);
  }
};

void PreTokenizer::cut(std::string_view text, bool at_start, MatchRoom& room, const Take& take) const {
  const bool over = false;
  Run{steps_, room, take, over}.piece(0, text, at_start);
}

std::optional<std::size_t> PreTokenizer::first_end(std::string_view text, MatchRoom& room) const {
  const auto changes = [](const PreStep& step) { return !std::holds_alternative<SplitStep>(step); };
  const auto splits = static_cast<std::size_t>(std::ranges::find_if(steps_, changes) - steps_.begin());
  std::size_t end = text.size();
  bool over = false;
  const Take take = [&](std::string_view piece) {
    const auto begin = static_cast<std::size_t>(piece.data() - text.data());
    end = begin > 0 ? begin : piece.size();
    over = true;
  };
  room.watch_end(text.data() + text.size());
  Run{std::span(steps_).first(splits), room, take, over}.piece(0, text, true);
  const bool reached = room.reached_end() || end == text.size();
  room.watch_end(nullptr);
  return reached ? std::nullopt : std::optional(end);
}

}  // namespace shoal
