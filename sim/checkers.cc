#include "sim/checkers.h"

#include <map>
#include <set>
#include <sstream>

#include "stages/integer_executor.h"

namespace shoal {

namespace {

struct Books {
  std::map<MicrobatchId, std::vector<Token>> committed;              // by the log
  std::map<Token, std::pair<MicrobatchId, std::uint16_t>> of_token;  // winners
  std::map<Token, int> secured;                                      // by how many committed rounds
  std::map<std::uint16_t, std::map<std::uint64_t, std::set<Token>>>
      by_version;  // stage -> version -> tokens secured by it
  std::set<Token> listed;
};

Books read_books(const Swarm& swarm, std::vector<std::string>& broken) {
  Books books;
  std::set<std::pair<std::uint16_t, std::uint64_t>> rounds;
  for (const EventRecord& event : swarm.events()) {
    if (event.event == "commit" && event.microbatch && event.tokens) {
      const auto [it, fresh] = books.committed.emplace(*event.microbatch, *event.tokens);
      if (!fresh && it->second != *event.tokens)
        broken.push_back("microbatch " + std::to_string(event.microbatch->serial) + " is logged twice");
      for (std::size_t k = 0; k < event.tokens->size(); ++k)
        books.of_token[(*event.tokens)[k]] = {*event.microbatch, static_cast<std::uint16_t>(k)};
    } else if (event.event == "round_commit" && event.secured && event.stage && event.version) {
      if (!rounds.emplace(event.stage->value, event.version->value).second) continue;  // replayed by a resumed launch
      for (const Secured& member : *event.secured)
        for (const std::uint64_t serial : member.serials) {
          const Token token{member.session, serial};
          ++books.secured[token];
          books.by_version[event.stage->value][event.version->value].insert(token);
        }
    } else if (event.event == "listed" && event.token) {
      books.listed.insert(*event.token);
    }
  }
  return books;
}

std::string text_of(const Token& token) {
  std::ostringstream out;
  out << token;
  return out.str();
}

// What the rounds up to `version` secured must be what the anchor holds: its tag, and each value of the integer
// executor.
std::string compare_anchor(const Books& books, Arena& arena, std::uint16_t stage, std::uint64_t version,
                           std::vector<std::string>& broken) {
  CountTag tag = 0;
  std::vector<double> sum(kIntegerParameters, 0);
  const auto rounds = books.by_version.find(stage);
  if (rounds != books.by_version.end())
    for (const auto& [number, tokens] : rounds->second) {
      if (number > version) break;
      for (const Token& token : tokens) {
        const auto winner = books.of_token.find(token);
        if (winner == books.of_token.end()) {
          broken.push_back("stage " + std::to_string(stage) + ": a round secured token " + text_of(token) +
                           ", which no log line names");
          continue;
        }
        tag += count_tag(winner->second.first);
        const IntegerGradient gradient = integer_gradient(winner->second.first, StageId(stage));
        for (std::size_t i = 0; i < gradient.size(); ++i) sum[i] += static_cast<double>(gradient[i]);
      }
    }
  if (arena.tag(ArenaRole::kAnchor) != tag) return "the anchor's tag is not the sum over what rounds secured";
  const auto anchor = arena.span(ArenaRole::kAnchor);
  for (std::size_t i = 0; i < anchor.size(); ++i)
    if (static_cast<double>(anchor[i]) != -sum[i])
      return "the anchor's value " + std::to_string(i) + " is " + std::to_string(anchor[i]) +
             ", secured gradients give " + std::to_string(-sum[i]);
  return "";
}

void check_anchor(const Books& books, const Swarm::HostedPeer& process, std::size_t index,
                  std::vector<std::string>& broken) {
  const std::uint16_t stage = process.peer->report().stage->value;
  const std::uint64_t version = process.peer->stage_peer()->version().value;
  Arena& arena = process.peer->executor()->arena();
  const std::string wrong = compare_anchor(books, arena, stage, version, broken);
  if (wrong.empty()) return;
  // One that END stopped may stand between the device's commit and its name.
  if (process.finished && compare_anchor(books, arena, stage, version + 1, broken).empty()) return;
  broken.push_back("peer " + std::to_string(index) + ", stage " + std::to_string(stage) + ", version " +
                   std::to_string(version) + ": " + wrong);
}

}  // namespace

std::vector<std::string> check_counting(const Swarm& swarm) {
  std::vector<std::string> broken;
  const Books books = read_books(swarm, broken);
  for (const auto& [token, times] : books.secured) {
    if (times > 1) broken.push_back("token " + text_of(token) + " is secured by " + std::to_string(times) + " rounds");
    if (books.listed.contains(token)) broken.push_back("token " + text_of(token) + " is secured and listed as lost");
  }
  for (std::size_t i = 0; i < swarm.peers().size(); ++i) {
    const auto& process = *swarm.peers()[i];
    if (process.alive && process.peer && process.peer->stage_peer() && process.peer->stage_peer()->serving())
      check_anchor(books, process, i, broken);
  }
  return broken;
}

std::vector<std::string> check_end(const Swarm& swarm) {
  std::vector<std::string> broken = check_counting(swarm);
  const Books books = read_books(swarm, broken);
  for (const auto& [microbatch, path] : books.committed)
    for (std::size_t k = 0; k < path.size(); ++k)
      if (!books.secured.contains(path[k]) && !books.listed.contains(path[k]))
        broken.push_back("microbatch " + std::to_string(microbatch.serial) + " at stage " + std::to_string(k) +
                         " is committed, in no round and not listed");
  if (!swarm.finished())
    broken.push_back("the run did not end");
  else if (swarm.summary().unfinished > 0)
    broken.push_back(std::to_string(swarm.summary().unfinished) + " microbatches are unfinished");
  return broken;
}

}  // namespace shoal
