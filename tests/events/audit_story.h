#pragma once
// The event files of a small whole run, told by hand as its processes would have written them, for tests of the audit
// that plant one thing in it.
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "events/audit.h"
#include "events/event_log.h"

namespace shoal {

// Two stages, two replicas each, four microbatches, two rounds a stage, rule diloco.
class Story {
 public:
  std::vector<std::pair<Session, EventRecord>> lines;

  static Session session(std::uint64_t tag) { return {tag << 56, 5}; }
  static Session trainer() { return session(0x77); }
  static Session peer(int stage, int replica) { return session(static_cast<std::uint64_t>(0x10 * (stage + 1) + replica)); }
  static MicrobatchId microbatch(std::uint64_t serial) { return {0x77, serial}; }
  static StageId id(int stage) { return StageId{static_cast<std::uint16_t>(stage)}; }
  // The entry that wins microbatch `serial` at `stage`; replicas take turns.
  static EntryName winner(std::uint64_t serial, int stage) {
    return {peer(stage, static_cast<int>(serial % 2)), serial / 2 + 1};
  }
  static CountTag tag_of(std::uint64_t begin, std::uint64_t end) {
    CountTag sum = 0;
    for (std::uint64_t serial = begin; serial < end; ++serial) sum += count_tag(microbatch(serial));
    return sum;
  }
  static Digest digest_of(int stage, std::uint64_t version) {
    Digest digest;
    digest.bytes[0] = static_cast<std::uint8_t>(16 * stage + static_cast<int>(version));
    return digest;
  }

  void say(const Session& who, EventRecord record) { lines.emplace_back(who, std::move(record)); }
  void say_of(const std::string& event, const EntryName& entry, std::uint64_t serial, int stage, std::string cause = "") {
    say(entry.session, {.event = event,
                        .microbatch = microbatch(serial),
                        .stage = id(stage),
                        .entry_name = entry,
                        .cause = std::move(cause)});
  }
  void open() {
    say(trainer(), {.event = "start"});
    for (int stage = 0; stage < 2; ++stage)
      for (int replica = 0; replica < 2; ++replica) {
        say(peer(stage, replica), {.event = "start"});
        say(trainer(), {.event = "authority_member",
                        .stage = id(stage),
                        .about = peer(stage, replica),
                        .more = {{"state", "joined"}}});
        say(peer(stage, replica), {.event = "serving", .stage = id(stage), .version = Version{0}});
      }
  }
  void issue(std::uint64_t serial) {
    say(trainer(), {.event = "issue",
                    .microbatch = microbatch(serial),
                    .step = StepId{0},
                    .more = {{"sample", std::to_string(serial)}, {"epoch", "0"}}});
  }
  void count(const EntryName& entry, std::uint64_t serial, int stage) {
    for (const char* event : {"entry", "forward", "counted"}) say_of(event, entry, serial, stage);
  }
  void train(std::uint64_t serial) {
    issue(serial);
    for (int stage = 0; stage < 2; ++stage) count(winner(serial, stage), serial, stage);
    say(trainer(), commit_event(microbatch(serial), {winner(serial, 0), winner(serial, 1)}, 2.0, 64));
    for (int stage = 0; stage < 2; ++stage) settle(serial, stage);
  }
  void settle(std::uint64_t serial, int stage) {
    const EntryName entry = winner(serial, stage);
    say_of("settled", entry, serial, stage);
    stepped_[entry.session] += count_tag(microbatch(serial));
    say(entry.session, {.event = "stepped",
                        .stage = id(stage),
                        .window = WindowSlot::kA,
                        .tag = anchor_[entry.session] + stepped_[entry.session],
                        .entries = std::vector<EntryName>{entry},
                        .targets = 64});
  }
  // Secures [begin, end) of a stage: both replicas take part, mark theirs and tell of the anchor.
  void round(int stage, std::uint64_t number, std::uint64_t begin, std::uint64_t end) {
    std::vector<Secured> secured = {{peer(stage, 0), {}}, {peer(stage, 1), {}}};
    for (std::uint64_t serial = begin; serial < end; ++serial)
      secured[serial % 2].serials.push_back(winner(serial, stage).serial);
    say(trainer(), {.event = "authority_round_open",
                    .stage = id(stage),
                    .round = RoundId{number},
                    .version = Version{number - 1},
                    .step = StepId{0},
                    .more = {{"members", "2"}}});
    for (const Secured& member : secured) {
      say(member.session, {.event = "round_open",
                           .stage = id(stage),
                           .round = RoundId{number},
                           .version = Version{number - 1},
                           .step = StepId{0}});
      if (member.serials.empty()) continue;
      say(member.session, {.event = "round_report",
                           .stage = id(stage),
                           .round = RoundId{number},
                           .tag = stepped_[member.session],
                           .secured = std::vector<Secured>{member}});
    }
    RoundCommit commit;
    commit.stage = id(stage);
    commit.round = RoundId{number};
    commit.version = Version{number};
    commit.digest = digest_of(stage, number);
    commit.tag = tag_of(begin, end);
    commit.secured = secured;
    say_decided(commit, end);
    say(trainer(), event_of(commit));
    for (std::uint64_t serial = begin; serial < end; ++serial) {
      say(trainer(), {.event = "merged",
                      .microbatch = microbatch(serial),
                      .stage = id(stage),
                      .entry_name = winner(serial, stage)});
      say_of("merged", winner(serial, stage), serial, stage);
    }
    for (const Secured& member : secured) {
      stepped_[member.session] = 0;
      anchor_[member.session] = tag_of(0, end);
      say(member.session, anchor_event(id(stage), Version{number}, tag_of(0, end), digest_of(stage, number)));
    }
  }
  void end() { say(trainer(), {.event = "end"}); }

  static Story whole() {
    Story story;
    story.open();
    for (std::uint64_t half = 0; half < 2; ++half) {
      for (std::uint64_t serial = 2 * half; serial < 2 * half + 2; ++serial) story.train(serial);
      for (int stage = 0; stage < 2; ++stage) story.round(stage, half + 1, 2 * half, 2 * half + 2);
    }
    story.end();
    return story;
  }

  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> texts;
    for (const auto& [who, record] : lines) {
      PeerId key;
      key.bytes[0] = static_cast<std::uint8_t>(who.peer_tag >> 56);
      std::ostringstream name;
      name << who;
      const std::string role = who.peer_tag == trainer().peer_tag ? "trainer" : "peer";
      texts[name.str().substr(0, 16)] += event_line({role, {}, key, who}, {}, record);
    }
    return texts;
  }
  AuditReport judge() const { return audit_texts(files()); }

  // The first line that fits.
  EventRecord& find(const std::function<bool(const Session&, const EventRecord&)>& fits) {
    for (auto& [who, record] : lines)
      if (fits(who, record)) return record;
    std::abort();
  }
  EventRecord& event(const std::string& name) {
    return find([&](const Session&, const EventRecord& r) { return r.event == name; });
  }
  void remove(const std::string& name, const std::optional<EntryName>& entry = {}) {
    std::erase_if(lines, [&](const auto& line) {
      return line.second.event == name && line.first != trainer() && (!entry || line.second.entry_name == entry);
    });
  }
  void remove_of_trainer(const std::string& name) {
    std::erase_if(lines, [&](const auto& line) { return line.second.event == name && line.first == trainer(); });
  }

 private:
  void say_decided(const RoundCommit& commit, std::uint64_t end) {
    say(trainer(), {.event = "authority_round_commit",
                    .stage = commit.stage,
                    .round = commit.round,
                    .version = commit.version,
                    .step = StepId{0},
                    .more = {{"about_digest", hex_of(commit.digest)},
                             {"about_tag", std::to_string(commit.tag)},
                             {"anchor_tag", std::to_string(tag_of(0, end))}}});
  }
  std::map<Session, CountTag> stepped_, anchor_;
};

}  // namespace shoal
