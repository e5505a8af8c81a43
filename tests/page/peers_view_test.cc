// What the page knows of a peer by its owner's word, and what a peer's own page knows.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/hex.h"
#include "events/books/run_view.h"
#include "page/run_json.h"
#include "tests/audit/audit_story.h"

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr double kStoryStart = 1.7e9;

TEST(PeersViewTest, APeerHasTheNameThatItJoinedWithLast) {
  RunView view;
  double time = kStoryStart;
  const auto join = [&](int stage, const char* name) {
    EventRecord joined{.event = EventKind::kMember, .stage = Story::id(stage), .about = Story::peer(stage, 0)};
    joined.state = "joined";
    joined.peer_name = name;
    view.take({joined, time += 0.1, true, Story::trainer()});
  };
  join(1, "old");
  join(1, "Zoe's 4090");
  join(0, "given once");
  join(0, "");  // its owner took it away
  std::size_t named = 0;
  const Json story = Json::parse(story_json(view));
  for (const Json& row : story["work"]) {
    if (row["name"].is_null()) continue;
    ++named;
    EXPECT_EQ(row["name"], "Zoe's 4090");
    EXPECT_EQ(row["peer"], hex_of_word(Story::peer(1, 0).peer_tag).substr(0, 8));
  }
  EXPECT_EQ(named, 1u);
}

TEST(PeersViewTest, APeersPageHasWhatItIsTold) {
  RunView view;
  view.set_facts({.stages = 2, .seen_by = "20000000"});
  const Session own = Story::peer(1, 0);
  for (const char* state : {"joined", "serving"})
    view.take(
        {{.event = EventKind::kMember, .stage = StageId(1), .about = own, .state = state}, kStoryStart, true, {}});
  for (std::uint64_t second = 1; second <= 20; ++second) {
    view.advance(kStoryStart + static_cast<double>(second));
    view.take_word({.heard = true,
                    .run_targets = 100000 + 640 * second,
                    .run_step = second,
                    .run_loss = 3.0,
                    .session = own,
                    .state = "serving",
                    .figures = {.accepted = second, .accepted_targets = 64 * second}},
                   kStoryStart + static_cast<double>(second));
  }
  view.take({{.event = EventKind::kBytes, .sent = 100, .received = 50}, kStoryStart + 20, false, own});
  const Json moment = Json::parse(moment_json(view));
  EXPECT_EQ(moment["tokens"]["done"], 100000 + 640 * 20);
  EXPECT_NEAR(moment["tokens"]["per_second"].get<double>(), 640, 64) << "what was there before has no rate";
  EXPECT_EQ(moment["loss"]["newest"], 3.0);
  EXPECT_TRUE(moment["count"].is_null()) << "a peer sees no commit";
  EXPECT_TRUE(moment["faults"].is_null());
  EXPECT_EQ(moment["seen_by"]["microbatches"], 20);
  EXPECT_EQ(moment["members"][0]["tokens"], 64 * 20);
  EXPECT_EQ(moment["members"][0]["sent"], 100);
  EXPECT_EQ(moment["bytes"]["of"], "this machine");
  EXPECT_EQ(Json::parse(story_json(view))["work"][0]["microbatches"], 20);
}

TEST(PeersViewTest, WhatAPeerIsNotToldIsNull) {
  RunView view;
  view.set_facts({.stages = 1, .end_targets = 1'000'000, .seen_by = "10000000"});
  EXPECT_TRUE(Json::parse(moment_json(view))["tokens"]["per_second"].is_null()) << "nothing was told yet";
  const Session own = Story::peer(0, 0), other = Story::peer(0, 1);
  for (const Session& about : {own, other})
    view.take(
        {{.event = EventKind::kMember, .stage = StageId(0), .about = about, .state = "joined"}, kStoryStart, true, {}});
  double time = kStoryStart;
  std::uint64_t targets = 5000;
  const auto seconds = [&](int count, bool heard) {
    for (int i = 0; i < count; ++i) {
      targets += 100;
      view.take_word({.heard = heard, .run_targets = heard ? targets : 0, .session = own, .state = "serving"}, ++time);
    }
  };
  seconds(20, true);
  EXPECT_NEAR(Json::parse(moment_json(view))["tokens"]["per_second"].get<double>(), 100, 10);
  seconds(200, false);  // a pause, in which the run goes on
  const Json paused = Json::parse(moment_json(view));
  EXPECT_TRUE(paused["tokens"]["per_second"].is_null());
  EXPECT_TRUE(paused["tokens"]["left_s"].is_null());
  seconds(15, true);
  const Json again = Json::parse(moment_json(view));
  EXPECT_NEAR(again["tokens"]["per_second"].get<double>(), 100, 10) << "the pause has no rate";
  for (const Json& bin : Json::parse(story_json(view))["history"]["per_second"].get<std::vector<Json>>())
    EXPECT_LE(bin.get<double>(), 200);
  for (const Json& member : again["members"].get<std::vector<Json>>()) {
    EXPECT_EQ(member["microbatches"].is_null(), member["peer"] != "10000000") << member;
    EXPECT_TRUE(member["lost"].is_null());
  }
  EXPECT_TRUE(again["stages"][0]["secured"].is_null());
  view.take({session_over_event(other, StageId(0), "left without a reason that members are told"), time, true, {}});
  const Json gone = Json::parse(moment_json(view));
  EXPECT_EQ(gone["members"][1]["state"], "gone");
}

}  // namespace
}  // namespace shoal
