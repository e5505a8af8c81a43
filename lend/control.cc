#include "lend/control.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "common/formatted.h"

namespace shoal {
namespace {

using ControlJson = nlohmann::ordered_json;

std::string value_of_answer(const std::string& answer, const char* key) {
  const ControlJson said = ControlJson::parse(answer, nullptr, false);
  return said.is_object() && said.contains(key) && said[key].is_string() ? said[key].get<std::string>() : "";
}

}  // namespace

std::string control_path(const std::string& home) { return home + "/control"; }

std::string pause_text(const PeerPause& pause) {
  std::string text = "paused (" + pause.why + formatted("): the device is free after %.1f s", seconds_of(pause.took));
  if (pause.lost > 0)
    text += "; " + std::to_string(pause.lost) +
            " text tokens that were settled here and that no round had secured in that time are lost: the launching "
            "process names each microbatch";
  else
    text += ", and nothing that was counted here is lost";
  if (pause.last_holder)
    text += ". Nobody else has the stage's state: it is kept in memory, and the run waits for this machine";
  return text;
}

std::string control_answer(const std::string& state, const std::string& text, const PeerPause* pause) {
  ControlJson answer = {{"schema", "shoal.control/1"}, {"state", state}, {"text", text}, {"process", ::getpid()}};
  if (pause != nullptr) {
    answer["took_s"] = seconds_of(pause->took);
    answer["in_order"] = pause->in_order;
    answer["lost_targets"] = pause->lost;
    answer["last_holder"] = pause->last_holder;
  }
  return answer.dump(-1, ' ', false,
                     ControlJson::error_handler_t::replace);  // a word or a program's name may hold any bytes
}

std::string text_of_answer(const std::string& answer) { return value_of_answer(answer, "text"); }
std::string state_of_answer(const std::string& answer) { return value_of_answer(answer, "state"); }

}  // namespace shoal
