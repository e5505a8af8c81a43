#pragma once
// The event files of a small whole run, told by hand as its processes would have written them, for tests of the audit
// that plant one thing in it.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "events/audit/audit.h"
#include "events/event_log.h"

namespace shoal {

// Two stages, two replicas each, four microbatches, two rounds a stage, rule diloco.
class Story {
 public:
  std::vector<std::pair<Session, EventRecord>> lines;

  static Session session(std::uint64_t tag) { return {tag << 56, 5}; }
  static Session trainer(std::uint64_t life = 0) { return {session(0x77).peer_tag, 5 + life}; }
  static Session peer(int stage, int replica) {
    return session(static_cast<std::uint64_t>(0x10 * (stage + 1) + replica));
  }
  static MicrobatchId microbatch(std::uint64_t serial) { return {0x77, serial}; }
  static StageId id(int stage) { return StageId{static_cast<std::uint16_t>(stage)}; }
  // The entry that wins microbatch `serial` at `stage`; replicas take turns.
  static EntryName winner(std::uint64_t serial, int stage) {
    return {peer(stage, static_cast<int>(serial % 2)), serial / 2 + 1};
  }
  static std::uint64_t microbatch_of(const Session& who, std::uint64_t serial) {
    return 2 * (serial - 1) + (who.peer_tag >> 56 & 1);
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
  void say_of(EventKind event, const EntryName& entry, std::uint64_t serial, int stage, std::string cause = "") {
    say(entry.session, {.event = event,
                        .microbatch = microbatch(serial),
                        .stage = id(stage),
                        .entry_name = entry,
                        .cause = std::move(cause)});
    if (event == EventKind::kEntry)
      lines.back().second.about = stage == 0 ? trainer() : peer(stage - 1, static_cast<int>(serial % 2));
  }
  void open() {
    say(trainer(), {.event = EventKind::kStart});
    for (int stage = 0; stage < 2; ++stage)
      for (int replica = 0; replica < 2; ++replica) {
        say(peer(stage, replica), {.event = EventKind::kStart});
        say(trainer(), {.event = EventKind::kMember,
                        .stage = id(stage),
                        .about = peer(stage, replica),
                        .about_peer = key_of(peer(stage, replica)),
                        .state = "joined",
                        .cause = "fewest members"});
        say(peer(stage, replica), {.event = EventKind::kServing, .stage = id(stage), .version = Version{0}});
      }
  }
  void issue(std::uint64_t serial) {
    say(trainer(), {.event = EventKind::kIssue,
                    .microbatch = microbatch(serial),
                    .step = StepId{0},
                    .sample = SampleId{serial},
                    .epoch = 0});
  }
  void count(const EntryName& entry, std::uint64_t serial, int stage) {
    for (const EventKind event : {EventKind::kEntry, EventKind::kForward, EventKind::kCounted})
      say_of(event, entry, serial, stage);
  }
  void train(std::uint64_t serial) {
    issue(serial);
    for (int stage = 0; stage < 2; ++stage) count(winner(serial, stage), serial, stage);
    say(trainer(), commit_event(microbatch(serial), {winner(serial, 0), winner(serial, 1)}, 2.0, 64));
    for (int stage = 0; stage < 2; ++stage) settle(serial, stage);
  }
  void settle(std::uint64_t serial, int stage) {
    const EntryName entry = winner(serial, stage);
    say_of(EventKind::kSettled, entry, serial, stage);
    stepped_[entry.session] += count_tag(microbatch(serial));
    say(entry.session, {.event = EventKind::kStepped,
                        .stage = id(stage),
                        .window = WindowSlot::kA,
                        .tag = anchor_[entry.session] + stepped_[entry.session],
                        .entries = std::vector<EntryName>{entry},
                        .targets = 64,
                        .delay_mean = 0.25,
                        .delays = std::vector<std::uint64_t>{48, 16},
                        .settle_wait_ms = 5});
  }
  // Secures [begin, end) of a stage: both replicas take part, mark theirs and tell of the anchor.
  void round(int stage, std::uint64_t number, std::uint64_t begin, std::uint64_t end, std::uint64_t version = 0) {
    if (version == 0) version = number;
    std::vector<Secured> secured = {{peer(stage, 0), {}}, {peer(stage, 1), {}}};
    for (std::uint64_t serial = begin; serial < end; ++serial)
      secured[serial % 2].serials.push_back(winner(serial, stage).serial);
    say(trainer(), {.event = EventKind::kRoundOpen,
                    .stage = id(stage),
                    .round = RoundId{number},
                    .version = Version{version - 1},
                    .step = StepId{0},
                    .members = 2});
    for (const Secured& member : secured) {
      say(member.session, {.event = EventKind::kRoundEnter,
                           .stage = id(stage),
                           .round = RoundId{number},
                           .version = Version{version - 1},
                           .step = StepId{0}});
      if (member.serials.empty()) continue;
      CountTag tag = 0;
      for (const std::uint64_t serial : member.serials)
        tag += count_tag(microbatch(microbatch_of(member.session, serial)));
      say(member.session, {.event = EventKind::kRoundReport,
                           .stage = id(stage),
                           .round = RoundId{number},
                           .tag = tag,
                           .secured = std::vector<Secured>{member}});
    }
    RoundCommit commit;
    commit.stage = id(stage);
    commit.round = RoundId{number};
    commit.version = Version{version};
    commit.digest = digest_of(stage, version);
    commit.tag = tag_of(begin, end);
    commit.secured = secured;
    say(trainer(), event_of(commit));
    for (std::uint64_t serial = begin; serial < end; ++serial) {
      say(trainer(), {.event = EventKind::kMerged,
                      .microbatch = microbatch(serial),
                      .stage = id(stage),
                      .entry_name = winner(serial, stage)});
      say_of(EventKind::kMerged, winner(serial, stage), serial, stage);
    }
    for (const Secured& member : secured) {
      for (const std::uint64_t serial : member.serials)
        stepped_[member.session] -= count_tag(microbatch(microbatch_of(member.session, serial)));
      anchor_[member.session] = tag_of(0, end);
      say(member.session, anchor_event(id(stage), Version{version}, tag_of(0, end), digest_of(stage, version)));
    }
  }
  void end(std::uint64_t life = 0) { say(trainer(life), {.event = EventKind::kEnd}); }
  void resume(std::uint64_t life) { say(trainer(life), {.event = EventKind::kStart, .cause = "resume"}); }
  // The peers go in order: no kill explains what they did not write.
  void go() {
    for (int stage = 0; stage < 2; ++stage)
      for (int replica = 0; replica < 2; ++replica)
        say(peer(stage, replica), {.event = EventKind::kEnd, .stage = id(stage), .cause = "asked to"});
  }

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
    for (const auto& [who, record] : lines) texts[file_of(who)] += line_of(who, record);
    return texts;
  }
  AuditReport judge() const { return audit_texts(files()); }

  static PeerId key_of(const Session& who) {
    PeerId key;
    key.bytes[0] = static_cast<std::uint8_t>(who.peer_tag >> 56);
    return key;
  }
  static std::string file_of(const Session& who) {
    std::ostringstream name;
    name << who;
    return name.str().substr(0, 16);
  }
  static std::string line_of(const Session& who, const EventRecord& record) {
    return event_line({.role = who.peer_tag == trainer().peer_tag ? "trainer" : "peer",
                       .run = {},
                       .peer = key_of(who),
                       .session = who},
                      {}, record);
  }

  using Fits = std::function<bool(const Session&, const EventRecord&)>;
  static Fits of(EventKind name, const EntryName& entry) {
    return [=](const Session& who, const EventRecord& r) {
      return who == entry.session && r.event == name && r.entry_name == entry;
    };
  }
  static Fits of(EventKind name, int stage, std::uint64_t round_or_version) {
    return [=](const Session&, const EventRecord& r) {
      const bool fits =
          r.round ? r.round->value == round_or_version : r.version && r.version->value == round_or_version;
      return r.event == name && r.stage == id(stage) && fits;
    };
  }
  // The first line that fits.
  EventRecord& find(const Fits& fits) {
    const auto at = place(fits);
    if (at == lines.end()) ADD_FAILURE() << "no such line";
    return at == lines.end() ? lines.front().second : at->second;
  }
  EventRecord& event(EventKind name) {
    return find([&](const Session&, const EventRecord& r) { return r.event == name; });
  }
  std::size_t remove(const Fits& fits) {
    return std::erase_if(lines, [&](const auto& line) { return fits(line.first, line.second); });
  }
  // Of peers.
  std::size_t remove(EventKind name, const EntryName& entry) { return remove(of(name, entry)); }
  std::size_t remove_all(const Session& who, EventKind name) {
    return remove([&](const Session& writer, const EventRecord& r) { return writer == who && r.event == name; });
  }
  void insert_before(const Fits& fits, const Session& who, EventRecord record) {
    lines.emplace(place(fits), who, std::move(record));
  }
  // Says the first line that fits a second time, behind itself.
  void repeat(const Fits& fits) {
    const auto at = place(fits);
    const auto copy = *at;
    lines.insert(at + 1, copy);
  }
  // A line of the process that tells of lines it could not write, in front of the first one that fits.
  void lose_before(const Fits& fits) { find(fits).missing = 1; }

 private:
  std::vector<std::pair<Session, EventRecord>>::iterator place(const Fits& fits) {
    return std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return fits(line.first, line.second); });
  }
  std::map<Session, CountTag> stepped_, anchor_;
};

// A replica dies before its second round: what it counted is lost by name, or (lost = false) silently.
inline Story story_with_a_loss(bool lost) {
  Story story;
  story.open();
  for (std::uint64_t serial = 0; serial < 4; ++serial) story.train(serial);
  story.round(0, 1, 0, 4);
  story.round(1, 1, 0, 3);
  story.say(Story::trainer(), session_over_event(Story::peer(1, 1), StageId{1}, "silent"));
  if (lost) {
    story.say(Story::trainer(), {.event = EventKind::kLost,
                                 .microbatch = Story::microbatch(3),
                                 .stage = StageId{1},
                                 .entry_name = Story::winner(3, 1),
                                 .cause = "silent"});
  }
  return story;
}

}  // namespace shoal
