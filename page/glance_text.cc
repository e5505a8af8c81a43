#include "page/glance_text.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/formatted.h"
#include "common/hex.h"
#include "common/log.h"
#include "events/books/run_view.h"
#include "events/books/stage_sums.h"
#include "events/line_parts.h"

namespace shoal {
namespace {

constexpr double kSilentFrom = 10;       // seconds without a line before they are told
constexpr std::size_t kTalesMax = 5;     // beneath the peers
constexpr std::size_t kLinesAlways = 6;  // above them, with the table's head
constexpr std::size_t kRowsMin = 4, kTalesMin = 2;

std::string clock_of(double seconds) { return clock_text(from_seconds(std::clamp(seconds, 0.0, 1e9))); }
std::string counted(std::uint64_t count, const char* one, const char* more) {
  return std::to_string(count) + " " + (count == 1 ? one : more);
}
std::string short_peer(const Session& session) { return hex_of_word(session.peer_tag).substr(0, 8); }

std::string state_words(const RunView& view, double told) {
  if (view.ended()) return "ended: " + (view.end_cause().empty() ? std::string("in order") : view.end_cause());
  const double silent = view.now() - told;
  if (silent >= kSilentFrom) return "nothing was written for " + clock_of(silent);
  return (view.targets_per_s() > 0 ? "training for " : "waiting for ") + clock_of(view.now() - view.begun());
}

std::string weakest_words(const std::vector<StageSum>& sums) {
  const auto none = std::find_if(sums.begin(), sums.end(), [](const auto& s) { return s.serving == 0; });
  if (none != sums.end()) return "stage " + std::to_string(none - sums.begin()) + " has nobody";
  const auto weakest = weakest_of(sums);
  if (!weakest) return "every stage has as many";
  return "weakest is stage " + std::to_string(*weakest) + " with " + std::to_string(sums[*weakest].serving);
}

std::string figures_line(const RunView& view) {
  std::string line = "  step " + std::to_string(view.loss().step);
  if (view.loss().newest) line += " | loss " + loss_text(*view.loss().newest);
  if (view.loss().validation) line += " | validation " + loss_text(*view.loss().validation);
  if (view.facts().unigram && view.facts().bigram)
    line += " (text " + loss_text(*view.facts().unigram) + ", " + loss_text(*view.facts().bigram) + ")";
  return line + " | " + short_number(view.targets_per_s()) + " tok/s";
}

std::string rounds_words(const RunView& view) {
  const RunView::Bytes& bytes = view.bytes();
  return bytes.rounds == 0 ? "" : ", rounds " + percent_text(bytes.rounds, bytes.sent) + " of the bytes";
}

std::string tokens_line(const RunView& view) {
  std::string line = "  " + short_number(view.targets());
  const std::uint64_t end = view.facts().end_targets;
  if (end == 0) return line + " tokens" + rounds_words(view);
  line += " of " + short_number(end) + " tokens (" + percent_text(view.targets(), end) + ")";
  if (const auto left = view.left_s()) line += ", about " + clock_of(*left) + " left";
  return line + rounds_words(view);
}

// Those that live first, then by stage.
std::vector<const SeenPeer*> rows_by_life(const RunView& view) {
  std::vector<const SeenPeer*> rows;
  for (const auto& [session, row] : view.peers().rows()) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const SeenPeer* a, const SeenPeer* b) {
    return std::pair(!a->lives(), a->stage) < std::pair(!b->lives(), b->stage);
  });
  return rows;
}

std::string row_line(const SeenPeer& row, const std::string& name, double now) {
  const auto figure = [](bool known, double value) { return known ? short_number(value) : std::string("-"); };
  const bool bytes = row.lives() && row.sent + row.received > 0;
  return formatted(" %2u %-8s %-11s %7s %8s %9llu %6llu %7s %7s", static_cast<unsigned>(row.stage),
                   short_peer(row.session).c_str(), std::string(name_of(row.state)).c_str(),
                   figure(row.lives(), row.rate.per_second()).c_str(),
                   short_number(static_cast<double>(row.targets)).c_str(),
                   static_cast<unsigned long long>(row.microbatches), static_cast<unsigned long long>(row.lost),
                   figure(bytes, row.up.per_second(now)).c_str(), figure(bytes, row.down.per_second(now)).c_str()) +
         (name.empty() ? "" : "  " + printable(name));
}

// The newest of what is a fault, or asked of a peer; in their order.
std::vector<const Tale*> newest_tales(const RunView& view, std::size_t most) {
  std::vector<const Tale*> tales;
  for (auto tale = view.story().tales().rbegin(); tale != view.story().tales().rend() && tales.size() < most; ++tale)
    if (tale->kind == Tale::Kind::kFault || tale->what == "moves") tales.push_back(&*tale);
  std::reverse(tales.begin(), tales.end());
  return tales;
}

// What happened, and why, of which the second may be long.
std::pair<std::string, std::string> said_of(const Tale& tale) {
  const std::string stage = tale.stage ? "stage " + std::to_string(*tale.stage) + ": " : "";
  const std::string peer = stage + "peer " + short_peer(tale.session);
  if (tale.what == "lost") return {peer + " was lost", tale.words};
  if (tale.what == "left") return {peer + " left", tale.words == "left" ? "" : tale.words};
  if (tale.what == "joined") return {peer + " joined", tale.words};
  if (tale.what == "moves") return {peer + " is asked to move", tale.words};
  if (tale.what == "unreachable")
    return {"a joiner, " + short_peer(tale.session) + ", can be dialled by nobody", tale.words};
  if (tale.what == "went back") return {stage + "went back", tale.words};
  if (tale.what == "round") return {stage + tale.words, ""};
  if (tale.what == "contradiction") return {stage + "a contribution counts twice", tale.words};
  return {peer + " says what the log does not know", tale.words};
}

std::string cost_of(const Tale& tale) {
  std::string cost;
  if (tale.lost > 0) cost = std::to_string(tale.lost) + " lost by name";
  if (tale.felt)
    cost += std::string(cost.empty() ? "" : ", ") + "the rate still feels it";
  else if (tale.felt_s && *tale.felt_s >= 1)
    cost += (cost.empty() ? "" : ", ") + formatted("felt for %.0f s", *tale.felt_s);
  return cost.empty() ? "" : "; " + cost;
}

}  // namespace

std::string tale_line(const Tale& tale, double begun) {
  const auto [what, why] = said_of(tale);
  return printable(clock_of(tale.at - begun) + " " + what + cost_of(tale) + (why.empty() ? "" : " (" + why + ")"));
}

std::string glance_text(const RunView& view, double told, GlanceSize size) {
  const std::vector<StageSum> sums = sums_of(view);
  const StageSum total = total_of(sums);
  const std::vector<const SeenPeer*> rows = rows_by_life(view);
  const std::size_t room = size.lines > kLinesAlways ? size.lines - kLinesAlways : 0;
  const std::vector<const Tale*> tales =
      newest_tales(view, std::clamp(room - std::min(room, std::max(rows.size(), kRowsMin)), kTalesMin, kTalesMax));
  const std::size_t shown = std::min(rows.size(), std::max(kRowsMin, room - std::min(room, tales.size() + 1)));

  std::vector<std::string> lines;
  const std::string name = view.facts().name.empty() ? "" : " " + view.facts().name;
  lines.push_back("run " + view.facts().key.substr(0, 8) + name + " | " + counted(view.stages(), "stage", "stages") +
                  " | " + state_words(view, told));
  lines.push_back(figures_line(view));
  lines.push_back(tokens_line(view));
  lines.push_back("counted twice " + std::to_string(view.tally().counted_twice()) + " | " +
                  short_number(total.counts.secured) + " secured, " + std::to_string(total.counts.lost) +
                  " lost by name, " + std::to_string(total.undecided) + " undecided");
  std::string peers = std::to_string(total.serving) + " of " + counted(total.members, "peer serves", "peers serve") +
                      ", " + weakest_words(sums);
  if (view.delay()) peers += " | late by " + formatted("%.2f", *view.delay());
  lines.push_back(peers + " | " + counted(view.story().faults(), "fault", "faults"));
  lines.push_back(" ST PEER     STATE         TOK/S   TOKENS  COUNTED   LOST    UP/s  DOWN/s");
  for (std::size_t i = 0; i < shown; ++i)
    lines.push_back(row_line(*rows[i], view.peers().find_work(rows[i]->session).name, view.now()));
  if (shown < rows.size()) lines.push_back("    and " + std::to_string(rows.size() - shown) + " more");
  for (const Tale* tale : tales) lines.push_back(tale_line(*tale, view.begun()));
  if (lines.size() > size.lines) lines.resize(size.lines);  // a terminal that has no room for the rows always shown
  std::string text;
  for (const std::string& line : lines) text += printable(line, size.columns) + "\n";
  return text;
}

std::string glance_line(const RunView& view, double told) {
  const std::vector<StageSum> sums = sums_of(view);
  const StageSum total = total_of(sums);
  std::string line = clock_of(view.now() - view.begun()) + " step " + std::to_string(view.loss().step);
  if (view.loss().newest) line += " loss " + loss_text(*view.loss().newest);
  line += " tok " + short_number(view.targets()) + " " + short_number(view.targets_per_s()) + " tok/s peers";
  for (const StageSum& stage : sums) line += " " + std::to_string(stage.serving);
  line += " twice " + std::to_string(view.tally().counted_twice()) + " lost " + std::to_string(total.counts.lost) +
          " faults " + std::to_string(view.story().faults());
  if (view.ended() || view.now() - told >= kSilentFrom) line += ", " + state_words(view, told);
  return printable(line);
}

}  // namespace shoal
