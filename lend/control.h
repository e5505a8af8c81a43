#pragma once
// The words between a `shoal join` and the owner of its machine: `shoal pause`, `resume` and `finish` say one on the
// socket in its home, and it answers with a line of JSON (shoal.control/1). Thread: any.
#include <string>

#include "runtime/peer/peer.h"

namespace shoal {

inline constexpr std::string_view kPauseWord = "pause", kResumeWord = "resume", kFinishWord = "finish",
                                  kStatusWord = "status";

std::string control_path(const std::string& home);
// "paused (by its owner): the device is free after 0.4 s, and nothing is lost. ..."
std::string pause_text(const PeerPause& pause);
// `state`: one word for programs; `text`: for people.
std::string control_answer(const std::string& state, const std::string& text, const PeerPause* pause = nullptr);

// The text and the state of such an answer; empty: it is none.
std::string text_of_answer(const std::string& answer);
std::string state_of_answer(const std::string& answer);

}  // namespace shoal
