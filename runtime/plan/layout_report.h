#pragma once
// `shoal plan RUN.toml --peers FILE`: which peer serves which stage, what that can make at most and what binds.
#include <string>

#include "common/result.h"
#include "layout/peer_list.h"
#include "runtime/config/config.h"

namespace shoal {

struct LayoutArguments {
  std::string peers, links;  // files; of links none: lines are as good as free
  std::string out;           // where the layout is written; empty: nowhere
};

// ERRORS: read_file's, parse_peer_list's.
Result<PeerList> load_peer_list(const std::string& path);

// Plans, writes `out` and prints. ERRORS: those of its files, kInput (what cannot be laid out), kIo.
Status report_layout(const RunConfig& config, const LayoutArguments& arguments, bool json);

}  // namespace shoal
