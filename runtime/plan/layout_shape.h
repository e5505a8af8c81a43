#pragma once
// What a run asks of the peers of a list, as layout/ plans with it. Pure; thread-safe.
//
// Work: as runtime/plan/stage_work.h has it. Bytes between stages: frames of the edge's codecs, "auto" as int8, and the
// text tokens that go with them. Bytes of a round: the payload as it travels. Memory: the stage and two microbatches
// must fit (runtime/plan/stage_memory.h). Speed: as the list says, or with the paced executor its own.
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "layout/link_table.h"
#include "layout/peer_list.h"
#include "layout/swarm_shape.h"
#include "runtime/config/config.h"

namespace shoal {

struct LayoutShape {
  SwarmShape shape{};                  // its peers in the list's order
  std::vector<std::string> regions{};  // by number
  bool lines_known = false;            // else each two peers are as good as beside each other
};

// A peer with a stage stays there. REQUIRES: a checked configuration. ERRORS: kInput, with the list's line: a peer
// without a speed, or without a region that the table has; a stage that the run does not have.
Result<LayoutShape> layout_shape(const RunConfig& config, const PeerList& list, const std::optional<LinkTable>& links);

}  // namespace shoal
