#include "bench/star.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <utility>

#include "common/os/offspring.h"
#include "common/os/thread_loop.h"
#include "demo/file_tail.h"

namespace shoal {
namespace {

constexpr Duration kToolBudget = 30s;
constexpr int kSecondsMax = 3600;  // it ends by itself when we were killed

Result<std::vector<std::string>> run_tool(std::vector<std::string> words, const std::string& output) {
  SHOAL_ASSIGN(Offspring child, Offspring::start({std::move(words), output + ".out", output + ".err"}));
  const std::optional<int> code = child.wait_until(monotonic_now() + kToolBudget);
  if (code != 0)
    return make_error(ErrorCode::kUnsupported,
                      "no network namespaces here; netlab said:" + last_lines(output + ".err", 3));
  return FileTail(output + ".out").new_lines();
}

}  // namespace

Star::Star(std::string tool, std::string id, std::string scratch)
    : tool_(std::move(tool)), id_(std::move(id)), scratch_(std::move(scratch)) {}

Star::Star(Star&& other) noexcept
    : tool_(std::move(other.tool_)), id_(std::exchange(other.id_, "")), scratch_(std::move(other.scratch_)) {}

Result<Star> Star::up(const std::string& tool, const StarShape& shape, const std::string& scratch) {
  if (geteuid() != 0) return make_error(ErrorCode::kUnsupported, "network namespaces need root");
  if (access("/dev/net/tun", R_OK | W_OK) != 0) return make_error(ErrorCode::kUnsupported, "/dev/net/tun is not there");
  SHOAL_ASSIGN(const std::vector<std::string> lines,
               run_tool({tool, "up", "--hosts", std::to_string(shape.hosts), "--bw",
                         std::to_string(std::llround(shape.bits_per_s)) + "bit", "--delay",
                         std::to_string(shape.one_way_ms / 2) + "ms", "--ttl", std::to_string(kSecondsMax)},
                        scratch + "/netlab-up"));
  if (lines.empty()) return make_error(ErrorCode::kUnsupported, "netlab printed no name of its star");
  return Star(tool, lines.front(), scratch);
}

Star::~Star() {
  if (id_.empty()) return;
  [[maybe_unused]] const auto down = run_tool({tool_, "down", id_}, scratch_ + "/netlab-down");
}

std::vector<std::string> Star::in_host(int host, std::vector<std::string> words) const {
  std::vector<std::string> result{tool_, "exec", id_, std::to_string(host), "--"};
  result.insert(result.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
  return result;
}

Result<StarShape> parse_net(const std::string& text, int hosts) {
  StarShape shape{.hosts = hosts};
  char* end = nullptr;
  shape.bits_per_s = std::strtod(text.c_str(), &end) * 1e6;
  std::string rest(end);
  for (const char* unit : {"mbit", "Mbit/s", "Mbit"}) {
    if (rest.starts_with(unit)) {
      rest.erase(0, std::string(unit).size());
      break;
    }
  }
  const char* delay = rest.c_str() + 1;
  if (rest.size() >= 2 && rest.front() == ',') shape.one_way_ms = std::strtod(delay, &end);
  const std::string unit(rest.size() >= 2 ? end : "");
  if (rest.size() < 2 || rest.front() != ',' || end == delay || (!unit.empty() && unit != "ms") ||
      !(shape.bits_per_s > 0) || !(shape.one_way_ms >= 0))
    return make_error(ErrorCode::kInput, "--net " + text + ": expected RATE,DELAY_MS, as in 100mbit,20 (one way)");
  return shape;
}

}  // namespace shoal
