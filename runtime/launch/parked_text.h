#pragma once
// Why a run stands still for want of peers, for people. Pure.
#include <string>
#include <vector>

#include "authority/authority_port.h"
#include "transport/messages.h"

namespace shoal {

// Which peers cannot reach which, when every serving peer of the stage says that nobody of the next one answers it.
// Else empty.
std::string stranded_text(const StageStatus& stage, const MemberList& list);

// Empty: every stage is served, and none is stranded.
std::string parked_text(const std::vector<StageStatus>& stages, const MemberList& list);

}  // namespace shoal
