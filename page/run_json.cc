#include "page/run_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/hex.h"
#include "events/books/stage_sums.h"
#include "page/run_figures.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

// Digits that a screen shows: four behind the point below 1000, else none.
Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  const double unit = std::abs(value) < 1000 ? 1e4 : 1;
  return std::round(value * unit) / unit;
}
Json rounded(const std::optional<double>& value) { return value ? rounded(*value) : Json(nullptr); }
Json time_of(double time) { return time > 0 ? Json(std::round(time * 1000) / 1000) : Json(nullptr); }

std::string peer_name(std::uint64_t tag) { return hex_of_word(tag).substr(0, 8); }
// A session among those of its peer.
std::string id_of(const Session& session) {
  return peer_name(session.peer_tag) + "." + hex_of_word(session.incarnation).substr(0, 4);
}

Json run_of(const RunView& view) {
  return {{"name", view.facts().name},
          {"key", view.facts().key},
          {"stages", view.stages()},
          {"begun", time_of(view.begun())},
          {"ended", view.ended() ? Json(view.end_cause().empty() ? "in order" : view.end_cause()) : Json(nullptr)},
          {"parked", view.parked().empty() ? Json(nullptr) : Json(view.parked())}};
}

Json value_of(const FigureValue& value) {
  const auto* measured = std::get_if<double>(&value);
  return measured != nullptr ? rounded(*measured) : figure_json<Json>(value);
}

// Whose page it is, if a peer's, and what that peer does.
Json seen_by_of(const RunView& view) {
  if (!view.facts().of_peer()) return nullptr;
  const MemberWord& word = view.word();
  Json json = {{"peer", view.facts().seen_by}, {"state", word.state}, {"reason", word.reason}};
  for (const PeerFigure& row : peer_figures())
    if (row.places.page != nullptr) json[row.places.page] = value_of(row.of(word.figures));
  return json;
}

void put_figures(const RunView& view, Json& moment) {
  const bool of_peer = view.facts().of_peer();
  moment["loss"]["validated_at_end"] = view.loss().validated_at_end;
  moment["bytes"]["of"] = of_peer ? "this machine" : view.bytes().of_peers ? "all processes" : "the launching process";
  for (const RunFigure& row : run_figures()) moment[Json::json_pointer(row.places.page)] = value_of(row.of(view));
  if (of_peer) moment["count"] = nullptr;  // it sees no commit
}

Json stages_of(const RunView& view, const std::vector<StageSum>& sums) {
  Json list = Json::array();
  const auto known = [&](const auto& value) { return view.facts().of_peer() ? Json(nullptr) : Json(value); };
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto stage = static_cast<std::uint16_t>(i);
    const Tally::Stage& counts = sums[i].counts;
    const auto open = view.open_rounds().find(stage);
    list.push_back(
        {{"serving", sums[i].serving},
         {"members", sums[i].members},
         {"per_second", known(rounded(sums[i].rate))},
         {"version", counts.version},
         {"rounds", known(counts.rounds)},
         {"restores", known(counts.restores)},
         {"secured", known(counts.secured)},
         {"lost", known(counts.lost)},
         {"taken_back", known(counts.taken_back)},
         {"undecided", known(sums[i].undecided)},
         {"round_open_s",
          open == view.open_rounds().end() ? Json(nullptr) : rounded(std::max(0.0, view.now() - open->second.since))}});
  }
  return list;
}

// Those that live first, then by stage.
std::vector<const SeenPeer*> shown_of(const RunView& view) {
  std::vector<const SeenPeer*> rows;
  for (const auto& [session, row] : view.peers().rows()) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const SeenPeer* a, const SeenPeer* b) {
    return std::pair(!a->lives(), a->stage) < std::pair(!b->lives(), b->stage);
  });
  rows.resize(std::min(rows.size(), kMembersShown));
  return rows;
}

Json member_of(const SeenPeer& row, const RunView& view) {
  const bool tells_bytes = row.sent + row.received > 0;
  const bool of_peer = view.facts().of_peer();
  const bool own = of_peer && row.session == view.word().session;
  // A peer knows its own work alone, and what was lost with nobody.
  const auto work = [&](const auto& value) { return of_peer && !own ? Json(nullptr) : Json(value); };
  const auto known = [&](const auto& value) { return of_peer ? Json(nullptr) : Json(value); };
  const bool gone = of_peer && row.state == SeenState::kLeft;  // nobody told it how
  return {{"id", id_of(row.session)},
          {"peer", peer_name(row.session.peer_tag)},
          {"stage", row.stage},
          {"state", gone ? std::string_view("gone") : name_of(row.state)},
          {"asked_to_move", row.asked_to_move},
          {"reach", row.reach.empty() ? Json(nullptr) : Json(row.reach)},
          {"reason", row.reason},
          {"per_second", work(row.lives() ? rounded(row.rate.per_second()) : Json(0))},
          {"microbatches", work(row.microbatches)},
          {"tokens", work(row.targets)},
          {"lost", known(row.lost)},
          {"since", known(time_of(row.since))},
          {"worked", time_of(row.worked)},
          {"over", time_of(row.over)},
          {"quiet_s", rounded(row.quiet)},
          {"sent", tells_bytes ? Json(row.sent) : Json(nullptr)},
          {"received", tells_bytes ? Json(row.received) : Json(nullptr)},
          {"up_per_second", tells_bytes ? rounded(row.up.per_second(view.now())) : Json(nullptr)},
          {"down_per_second", tells_bytes ? rounded(row.down.per_second(view.now())) : Json(nullptr)}};
}

// [from, to, targets a second], by place in "members"; -1: the trainer.
Json edges_of(const RunView& view, const std::vector<const SeenPeer*>& shown) {
  std::map<Session, int> places{{Session{}, -1}};
  for (std::size_t i = 0; i < shown.size(); ++i) places[shown[i]->session] = static_cast<int>(i);
  std::vector<std::tuple<double, int, int>> edges;
  for (const auto& [edge, flow] : view.peers().edges()) {
    const auto from = places.find(edge.first), to = places.find(edge.second);
    if (from == places.end() || to == places.end()) continue;
    edges.emplace_back(flow.per_second(view.now()), from->second, to->second);
  }
  std::sort(edges.rbegin(), edges.rend());
  edges.resize(std::min(edges.size(), kEdgesShown));
  Json list = Json::array();
  for (const auto& [rate, from, to] : edges) list.push_back({from, to, rounded(rate)});
  return list;
}

Json history_of(const History& history) {
  Json loss = Json::array(), least = Json::array(), most = Json::array(), validation = Json::array(),
       rate = Json::array(), rounds = Json::array(), faults = Json::array();
  for (const History::Bin& bin : history.bins()) {
    const bool any = bin.weight > 0;
    loss.push_back(any ? rounded(bin.loss / bin.weight) : Json(nullptr));
    least.push_back(any ? rounded(bin.loss_least) : Json(nullptr));
    most.push_back(any ? rounded(bin.loss_most) : Json(nullptr));
    validation.push_back(bin.validations > 0 ? rounded(bin.validation / bin.validations) : Json(nullptr));
    rate.push_back(rounded(static_cast<double>(bin.targets) / history.width()));
    rounds.push_back(bin.rounds);
    faults.push_back(bin.faults);
  }
  return {{"begin", time_of(history.begin())},
          {"width_s", history.width()},
          {"loss", loss},
          {"loss_least", least},
          {"loss_most", most},
          {"validation", validation},
          {"per_second", rate},
          {"rounds", rounds},
          {"faults", faults}};
}

Json tales_of(const FaultStory& story) {
  Json list = Json::array();
  for (const Tale& tale : story.tales())
    list.push_back({{"time", time_of(tale.at)},
                    {"fault", tale.kind == Tale::Kind::kFault},
                    {"what", tale.what},
                    {"stage", tale.stage ? Json(*tale.stage) : Json(nullptr)},
                    {"peer", tale.session == Session{} ? Json(nullptr) : Json(peer_name(tale.session.peer_tag))},
                    {"words", tale.words},
                    {"felt", tale.felt},
                    {"felt_s", rounded(tale.felt_s)},
                    {"lost", tale.lost},
                    {"named", tale.named}});
  return list;
}

// A peer knows its own.
Json work_of(const RunView& view) {
  const PeerBoard& peers = view.peers();
  std::vector<std::pair<std::uint64_t, const PeerWork*>> all;
  for (const auto& [tag, work] : peers.work())
    if (!view.facts().of_peer() || peer_name(tag) == view.facts().seen_by) all.emplace_back(tag, &work);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.second->targets > b.second->targets; });
  Json list = Json::array();
  const auto row = [&view](Json name, const PeerWork& work) -> Json {
    const bool tells_bytes = work.sent + work.received > 0;
    return {{"peer", std::move(name)},
            {"name", work.name.empty() ? Json(nullptr) : Json(work.name)},
            {"microbatches", work.microbatches},
            {"tokens", work.targets},
            {"lost", view.facts().of_peer() ? Json(nullptr) : Json(work.lost)},
            {"sessions", work.sessions},
            {"sent", tells_bytes ? Json(work.sent) : Json(nullptr)},
            {"received", tells_bytes ? Json(work.received) : Json(nullptr)}};
  };
  for (const auto& [tag, work] : all) list.push_back(row(peer_name(tag), *work));
  if (peers.others().microbatches > 0) list.push_back(row(nullptr, peers.others()));
  return list;
}

// What others wrote may be no UTF-8, and is shown, never run: the page puts it in as text.
std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string moment_json(const RunView& view) {
  const std::vector<StageSum> sums = sums_of(view);
  const std::vector<const SeenPeer*> shown = shown_of(view);
  const std::optional<std::size_t> weakest = weakest_of(sums);
  Json members = Json::array();
  for (const SeenPeer* row : shown) members.push_back(member_of(*row, view));
  Json moment = {{"time", time_of(view.now())},
                 {"run", run_of(view)},
                 {"seen_by", seen_by_of(view)},
                 {"weakest", weakest ? Json(*weakest) : Json(nullptr)},
                 {"stages", stages_of(view, sums)},
                 {"members", members},
                 {"members_left_out", view.peers().rows().size() - shown.size()},
                 {"edges", edges_of(view, shown)}};
  put_figures(view, moment);
  return dumped(moment);
}

std::string story_json(const RunView& view) {
  return dumped({{"history", history_of(view.history())},
                 {"tales", tales_of(view.story())},
                 {"tales_forgotten", view.story().forgotten()},
                 {"work", work_of(view)}});
}

std::string snapshot_json(const std::string& moment, const std::string& story,
                          const std::optional<ReplaySpan>& replay) {
  Json head = {{"schema", kPageSchema}, {"mode", replay ? "replay" : "live"}};
  if (replay) head["replay"] = {{"from", replay->from}, {"to", replay->to}, {"speed", replay->speed}};
  std::string text = dumped(head);
  text.pop_back();
  return text + R"(,"moment":)" + moment + R"(,"story":)" + story + "}";
}

}  // namespace shoal
