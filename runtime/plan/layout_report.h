#pragma once
// What `shoal plan --peers` says of a layout: which peer serves which stage, what that can make at most and what binds.
// Pure.
#include <string>

#include "common/program/json_text.h"
#include "layout/layout_cost.h"
#include "layout/layout_plan.h"
#include "runtime/plan/layout_shape.h"

namespace shoal {

// Borrows all but the story, which is that of the planned layout.
struct LayoutReport {
  const RunConfig& config;
  const PeerList& list;
  const LayoutShape& of;
  const PlannedLayout& planned;
  LayoutStory story;
};

std::string text_of(const LayoutReport& report);
Json json_of(const LayoutReport& report);

}  // namespace shoal
