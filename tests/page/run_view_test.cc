// What the page knows of a run, from events told by hand.
#include "events/books/run_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "page/glance_text.h"
#include "page/run_json.h"
#include "page/run_metrics.h"
#include "tests/audit/audit_story.h"

namespace shoal {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kStart = 1.7e9;

// All lines of a story, one a tenth of a second.
RunView view_of(const Story& story) {
  RunView view;
  double time = kStart;
  for (const auto& [who, record] : story.lines)
    view.take({record, time += 0.1, who.peer_tag == Story::trainer().peer_tag, who});
  return view;
}

Json moment_of(const RunView& view) { return Json::parse(moment_json(view)); }
Json story_of(const RunView& view) { return Json::parse(story_json(view)); }

EventRecord committed(std::uint64_t serial) {
  return commit_event(Story::microbatch(serial), {Story::winner(serial, 0), Story::winner(serial, 1)}, 2.0, 64);
}

TEST(RunViewTest, AWholeRunComesToTheAuditsSums) {
  const Story story = Story::whole();
  const RunView view = view_of(story);
  const AuditReport audit = story.judge();
  EXPECT_EQ(view.tally().issued(), audit.issued);
  EXPECT_EQ(view.tally().committed(), audit.committed);
  EXPECT_EQ(view.tally().committed_targets(), audit.committed_targets);
  EXPECT_EQ(view.tally().counted_twice(), 0u);
  for (const auto& [stage, verdict] : audit.stages) {
    EXPECT_EQ(view.tally().stages().at(stage).secured, verdict.secured);
    EXPECT_EQ(view.tally().stages().at(stage).rounds, verdict.rounds);
    EXPECT_EQ(view.tally().undecided(stage), verdict.undecided);
  }
  EXPECT_TRUE(view.ended());
  EXPECT_NEAR(*view.delay(), 0.25, 1e-9);
}

TEST(RunViewTest, RoundsAreAPartOfTheBytesAndHoldDevices) {
  RunView view;
  for (const std::uint64_t peer : {1, 2}) {
    EventRecord bytes = bytes_event({.event = EventKind::kBytes, .sent = 1000, .received = 900}, {});
    bytes.rounds = {.sent = 150 * peer, .device_us = 250'000};
    view.take({bytes, kStart + 1, false, Story::session(peer)});
  }
  EXPECT_EQ(moment_of(view)["bytes"]["rounds"], 450);
  EXPECT_EQ(moment_of(view)["rounds_device_s"], 0.5);
  RunMetrics metrics;
  metrics.update(view);
  EXPECT_THAT(metrics.text(), HasSubstr("shoal_round_sent_bytes_total 450"));
  EXPECT_THAT(glance_text(view, view.now(), {}), HasSubstr("rounds 22% of the bytes"));
}

TEST(RunViewTest, WhatAResumedProcessRepeatsCountsOnce) {
  Story story = story_with_a_loss(true);
  const auto said = story.lines;
  story.resume(1);
  for (const auto& [who, record] : said)
    if (who == Story::trainer() && (record.event == EventKind::kCommit || record.event == EventKind::kLost ||
                                    record.event == EventKind::kRoundCommit || record.event == EventKind::kSessionOver))
      story.say(Story::trainer(1), record);
  const RunView once = view_of(story_with_a_loss(true)), again = view_of(story);
  EXPECT_EQ(again.tally().committed(), once.tally().committed());
  EXPECT_EQ(again.tally().counted_twice(), 0u);
  EXPECT_EQ(again.tally().stages().at(1).lost, 1u);
  EXPECT_EQ(again.tally().stages().at(1).secured, once.tally().stages().at(1).secured);
  EXPECT_EQ(again.story().faults(), once.story().faults());
  EXPECT_EQ(story_of(again)["work"], story_of(once)["work"]) << "microbatches, tokens and losses of each peer";
}

TEST(RunViewTest, WhatIsLostIsNamedOnceHoweverOftenItIsTold) {
  RunView view;
  view.take({session_over_event(Story::peer(1, 1), StageId{1}, "silent"), kStart, true, Story::trainer()});
  constexpr std::uint64_t kLostOnes = FaultStory::kNamedMax + 4;
  for (int life = 0; life < 2; ++life)
    for (std::uint64_t serial = 0; serial < kLostOnes; ++serial)
      view.take({{.event = EventKind::kLost,
                  .microbatch = Story::microbatch(serial),
                  .stage = StageId{1},
                  .entry_name = EntryName{Story::peer(1, 1), serial},
                  .cause = "silent"},
                 kStart + 1,
                 true,
                 Story::trainer()});
  const Tale& tale = view.story().tales().back();
  EXPECT_EQ(tale.lost, kLostOnes);
  EXPECT_EQ(tale.named.size(), FaultStory::kNamedMax);
  EXPECT_EQ(view.peers().find_work(Story::peer(1, 1)).lost, kLostOnes);
}

TEST(RunViewTest, ALostSessionIsOneFaultHoweverOftenItIsTold) {
  RunView view;
  const auto over = [&] {
    view.take({session_over_event(Story::peer(1, 1), StageId{1}, "silent"), kStart, true, Story::trainer()});
  };
  over();
  for (std::size_t i = 0; i <= FaultStory::kToldMax; ++i)
    view.take({{.event = EventKind::kMember, .stage = StageId{0}, .about = Story::peer(0, 0), .state = "joined"},
               kStart,
               true,
               Story::trainer()});
  ASSERT_GT(view.story().forgotten(), 0u);
  over();
  EXPECT_EQ(view.story().faults(), 1u);
}

TEST(RunViewTest, AStageThatWentBackIsOneFaultHoweverOftenItIsTold) {
  RunView view;
  for (int life = 0; life < 2; ++life)
    view.take({restored_event(StageId{0}, RoundId{3}, Version{2}, Version{1}, {}, {}, {}, "nobody has it"), kStart,
               true, Story::trainer()});
  EXPECT_EQ(view.story().faults(), 1u);
  EXPECT_EQ(view.story().tales().size(), 1u);
  EXPECT_EQ(view.tally().of_stage(0).restores, 1u);
}

// A peer's file tells of nobody's work but in bytes.
TEST(RunViewTest, WhatAPeerTellsOfSessionsIsNotTaken) {
  RunView view;
  view.take({{.event = EventKind::kMember, .stage = StageId{0}, .about = Story::peer(0, 0), .state = "serving"},
             kStart,
             false,
             Story::peer(1, 0)});
  EXPECT_TRUE(view.peers().rows().empty());
}

TEST(RunViewTest, WhatTwoRoundsNameIsCountedTwice) {
  Story story = Story::whole();
  auto& later = story.find(Story::of(EventKind::kRoundCommit, 0, 2));
  later.secured->front().serials.push_back(Story::winner(0, 0).serial);
  EXPECT_EQ(view_of(story).tally().counted_twice(), 1u);
  EXPECT_EQ(story.judge().counted_twice, 1u);
}

TEST(RunViewTest, WhatARoundNamesAndIsLostIsCountedTwice) {
  Story story = Story::whole();
  story.say(Story::trainer(), {.event = EventKind::kLost,
                               .microbatch = Story::microbatch(0),
                               .stage = StageId{0},
                               .entry_name = Story::winner(0, 0),
                               .cause = "gone"});
  EXPECT_EQ(view_of(story).tally().counted_twice(), 1u);
}

TEST(RunViewTest, ALostPeerIsToldWithItsReasonAndWhatWasLostByName) {
  const RunView view = view_of(story_with_a_loss(true));
  const Json tales = story_of(view)["tales"];
  const auto lost = std::find_if(tales.begin(), tales.end(), [](const Json& tale) { return tale["what"] == "lost"; });
  ASSERT_NE(lost, tales.end());
  EXPECT_EQ((*lost)["words"], "silent");
  EXPECT_EQ((*lost)["stage"], 1);
  EXPECT_EQ((*lost)["lost"], 1);
  EXPECT_THAT((*lost)["named"].get<std::vector<int>>(), ElementsAre(3));
  bool shown = false;
  const Json moment = moment_of(view);
  for (const Json& member : moment["members"])
    if (member["state"] == "lost") {
      shown = true;
      EXPECT_EQ(member["reason"], "silent");
      EXPECT_EQ(member["lost"], 1);
    }
  EXPECT_TRUE(shown);
}

TEST(RunViewTest, WhatIsGoneForLongIsShownNoMore) {
  RunView view = view_of(story_with_a_loss(true));
  const std::size_t before = moment_of(view)["members"].size();
  view.advance(view.now() + PeerBoard::kFades + 2);
  EXPECT_EQ(moment_of(view)["members"].size(), before - 1);
  EXPECT_EQ(story_of(view)["work"].size(), before) << "what it did is kept";
}

// 64 tokens a second; one second without any when a peer is lost.
TEST(RunViewTest, AFaultIsFeltUntilTheRateIsBack) {
  RunView view;
  std::uint64_t serial = 0;
  const auto second = [&](double at, bool works) {
    if (works) view.take({committed(serial++), at + 0.5, true, Story::trainer()});
    view.advance(at + 1);
  };
  for (int i = 0; i < 20; ++i) second(kStart + i, true);
  view.take({session_over_event(Story::peer(1, 1), StageId{1}, "silent"), kStart + 20, true, Story::trainer()});
  for (int i = 20; i < 24; ++i) second(kStart + i, false);
  EXPECT_TRUE(view.story().tales().back().felt);
  for (int i = 24; i < 29; ++i) second(kStart + i, true);
  const Tale& tale = view.story().tales().back();
  EXPECT_FALSE(tale.felt);
  ASSERT_TRUE(tale.felt_s);
  EXPECT_NEAR(*tale.felt_s, 4, 1.01);
  EXPECT_EQ(tale.before, 64);
}

TEST(RunViewTest, APeerThatLeavesInOrderIsNoFault) {
  RunView view;
  view.take({{.event = EventKind::kMember, .stage = StageId{0}, .about = Story::peer(0, 0), .state = "joined"},
             kStart,
             true,
             Story::trainer()});
  view.take({session_over_event(Story::peer(0, 0), StageId{0}, "left"), kStart + 1, true, Story::trainer()});
  EXPECT_EQ(view.story().faults(), 0u);
  EXPECT_EQ(moment_of(view)["members"][0]["state"], "left");
}

TEST(RunViewTest, TheStageWithTheFewestPeersIsTheWeakest) {
  RunView view;
  const auto serves = [&](int stage, int replica) {
    view.take({{.event = EventKind::kMember,
                .stage = Story::id(stage),
                .about = Story::peer(stage, replica),
                .state = "serving"},
               kStart,
               true,
               Story::trainer()});
  };
  serves(0, 0);
  serves(1, 0);
  EXPECT_TRUE(moment_of(view)["weakest"].is_null()) << "as many everywhere";
  serves(0, 1);
  EXPECT_EQ(moment_of(view)["weakest"], 1);
}

TEST(RunViewTest, TimeLeftFollowsTheRate) {
  RunView view;
  view.set_facts({.name = "tidepool", .stages = 2, .end_targets = 64 * 100});
  for (int i = 0; i <= 20; ++i)
    view.take({committed(static_cast<std::uint64_t>(i)), kStart + i, true, Story::trainer()});
  ASSERT_TRUE(view.left_s());
  EXPECT_NEAR(view.targets_per_s(), 64, 1);
  EXPECT_NEAR(*view.left_s(), 79, 4);
}

TEST(RunViewTest, WordsOfStrangersStayText) {
  RunView view;
  view.take({{.event = EventKind::kMember,
              .stage = StageId{0},
              .about = Story::peer(0, 0),
              .state = "joined",
              .cause = "<script>\"\xff\n" + std::string(5000, 'x')},
             kStart,
             true,
             Story::trainer()});
  const Json member = moment_of(view)["members"][0];
  EXPECT_LE(member["reason"].get<std::string>().size(), PeerBoard::kReasonBytesMax + 4);
  EXPECT_THAT(member["reason"].get<std::string>(), HasSubstr("<script>")) << "the page puts it in as text";
}

TEST(RunViewTest, NoLineMakesItFail) {
  RunView view;
  for (int kind = 0; kind <= static_cast<int>(kEventKindLast); ++kind)
    for (const bool of_trainer : {false, true}) {
      view.take({{.event = static_cast<EventKind>(kind)}, kStart, of_trainer, {}});
      view.take({{.event = static_cast<EventKind>(kind),
                  .microbatch = MicrobatchId{1, std::numeric_limits<std::uint64_t>::max()},
                  .stage = StageId{0xffff},
                  .about = Session{},
                  .entry_name = EntryName{{}, std::numeric_limits<std::uint64_t>::max()},
                  .version = Version{std::numeric_limits<std::uint64_t>::max()},
                  .entries = std::vector<EntryName>(70000),
                  .loss = std::numeric_limits<double>::quiet_NaN()},
                 1e300,
                 of_trainer,
                 {}});
    }
  EXPECT_TRUE(moment_of(view).is_object());
  EXPECT_TRUE(story_of(view).is_object());
}

TEST(HistoryTest, TheWholeRunFitsABoundedNumberOfBins) {
  History history;
  double weight = 0;
  for (int second = 0; second < 24 * 3600; ++second) {
    history.on_loss(kStart + second, 8 - second * 1e-5, 64);
    history.on_targets(kStart + second, 64);
  }
  EXPECT_LE(history.bins().size(), History::kBinsMax);
  EXPECT_GE(history.bins().size(), History::kBinsMax / 4);
  EXPECT_EQ(history.width(), 256);
  std::uint64_t targets = 0;
  for (const History::Bin& bin : history.bins()) {
    targets += bin.targets;
    weight += bin.weight;
    EXPECT_LE(bin.loss_least, bin.loss / bin.weight);
    EXPECT_GE(bin.loss_most, bin.loss / bin.weight);
  }
  EXPECT_EQ(targets, 64u * 24 * 3600) << "what two bins had, their sum has";
  EXPECT_EQ(weight, 64.0 * 24 * 3600);
}

TEST(SerialSetTest, ASerialIsNewOnce) {
  SerialSet set;
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t serial :
       {std::uint64_t{0}, std::uint64_t{63}, std::uint64_t{64}, std::uint64_t{4096}, most}) {
    EXPECT_TRUE(set.insert(serial));
    EXPECT_FALSE(set.insert(serial));
    EXPECT_TRUE(set.contains(serial));
  }
  EXPECT_FALSE(set.contains(1));
  EXPECT_EQ(set.size(), 5u);
}

TEST(RunMetricsTest, CountersRiseAndHistogramsHoldEachOnce) {
  RunMetrics metrics;
  RunView view = view_of(story_with_a_loss(true));
  metrics.update(view);
  metrics.update(view);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("# TYPE shoal_tokens_total counter"));
  EXPECT_THAT(text, HasSubstr("shoal_tokens_total 256"));
  EXPECT_THAT(text, HasSubstr("shoal_counted_twice_total 0"));
  EXPECT_THAT(text, HasSubstr("shoal_lost_contributions_total{stage=\"1\"} 1"));
  EXPECT_THAT(text, HasSubstr("shoal_microbatch_seconds_count 4"));
}

TEST(RunMetricsTest, HopsAreTimedByTheStageThatWasAsked) {
  RunView view;
  const Session trainer{9, 9}, peer{0xa0, 1};
  const MicrobatchId id{9, 0};
  const auto asked = [&](const Session& holder, double after) {
    EventRecord sent = claim_event(EventKind::kForwardSent, id, peer, Lease{holder, 1});
    if (!(holder == trainer)) sent.stage = StageId{0};
    view.take({sent, kStart + after, holder == trainer, holder});
  };
  asked(trainer, 0);
  asked(trainer, 2);  // the newest counts
  asked(peer, 2.5);
  EventRecord counted = entry_event(EventKind::kCounted, id, EntryName{peer, 1});
  counted.stage = StageId{0};
  for (const double after : {2.7, 2.8}) view.take({counted, kStart + after, false, peer});  // once
  view.take({commit_event(id, {{peer, 1}}, 2.0, 64), kStart + 3, true, trainer});
  RunMetrics metrics;
  metrics.update(view);
  metrics.update(view);
  EXPECT_THAT(metrics.text(), AllOf(HasSubstr("shoal_hop_seconds_count{stage=\"0\"} 1\n"),
                                    HasSubstr("shoal_hop_seconds_bucket{stage=\"0\",le=\"0.5\"} 0\n"),
                                    HasSubstr("shoal_hop_seconds_bucket{stage=\"0\",le=\"1\"} 1\n"),
                                    HasSubstr("shoal_hop_seconds_count{stage=\"1\"} 1\n"),
                                    HasSubstr("shoal_hop_seconds_bucket{stage=\"1\",le=\"0.25\"} 1\n")));
}

TEST(RunMetricsTest, LateGradientsAreCountedByTheToken) {
  RunView view;
  EventRecord step{.event = EventKind::kStepped};
  step.delay_mean = 0.75;
  step.delays = {64, 128, 0, 64};
  view.take({step, kStart, false, {0xa0, 1}});
  RunMetrics metrics;
  metrics.update(view);
  EXPECT_THAT(metrics.text(), AllOf(HasSubstr("shoal_gradient_late_steps_count 256\n"),
                                    HasSubstr("shoal_gradient_late_steps_sum 320\n"),
                                    HasSubstr("shoal_gradient_late_steps_bucket{le=\"0\"} 64\n"),
                                    HasSubstr("shoal_gradient_late_steps_bucket{le=\"1\"} 192\n"),
                                    HasSubstr("shoal_gradient_late_steps_bucket{le=\"3\"} 256\n")));
}

}  // namespace
}  // namespace shoal
