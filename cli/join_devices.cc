#include "cli/join_devices.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include "common/log.h"
#include "common/os/executable.h"
#include "common/os/posix_file.h"
#include "common/program/json_text.h"
#include "common/program/outcome.h"
#include "lend/device_list.h"
#include "lend/join_each.h"
#include "lend/lend_unit.h"
#include "runtime/config/home.h"
#include "runtime/config/ticket.h"
#include "stages/torch_device.h"

namespace shoal {
namespace {

constexpr const char* kReportFile = "join.json";  // in a device's home
constexpr std::size_t kReportBytesMax = 1 << 20;

Result<EachOptions> processes_for(const std::string& home, const std::vector<ListedDevice>& devices,
                                  const GlobalOptions& global) {
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const SharedWords shared{
      .words = global.words, .home = home, .threads = std::max(1, threads / static_cast<int>(devices.size()))};
  SHOAL_ASSIGN(const std::string program, own_program());
  EachOptions options{.processes = {},
                      .home = {},
                      .restart_pause = std::chrono::seconds(kRestartSeconds),
                      .print = [](const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }};
  for (std::size_t i = 0; i < devices.size(); ++i) {
    EachProcess process{.name = devices[i].name,
                        .words = words_of(shared, devices, i),
                        .home = home_of(home, devices[i]),
                        .output = {}};
    process.words.insert(process.words.begin(), program);
    SHOAL_TRY(Home::open(process.home));  // its folder and its key; the process takes it then
    if (global.json) process.output = process.home + "/" + kReportFile;
    options.processes.push_back(std::move(process));
  }
  return options;
}

void print_reports(const EachOptions& options, const std::vector<int>& codes) {
  Json processes = Json::array();
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto text = read_file(options.processes[i].output, kReportBytesMax);
    const std::string_view report =
        text.ok() ? std::string_view(reinterpret_cast<const char*>(text->data()), text->size()) : std::string_view();
    processes.add({{"device", options.processes[i].name},
                   {"exit_code", codes[i]},
                   {"report", Json::read(report)}});  // null: it ended before it wrote one
  }
  const Json out = {{"schema", "shoal.join_each/1"}, {"processes", processes}};
  std::printf("%s\n", out.text().c_str());
}

}  // namespace

int join_devices(const std::string& ticket, const std::string& device, const GlobalOptions& global) {
  if (const auto read = parse_ticket(ticket); !read.ok()) return fail(read.error());
  const auto devices = listed_devices(device, choose_device);
  if (!devices.ok()) return fail(devices.error());
  const auto home = Home::open(home_path(global));
  if (!home.ok()) return fail(home.error());
  if (home->is_temporary())
    return fail(make_error(ErrorCode::kBusy, "another process uses " + home->path() +
                                                 ", where each device's home would be. HINT: --home DIR"));
  auto options = processes_for(home->path(), *devices, global);
  if (!options.ok()) return fail(options.error());
  options->home = home->path();
  log_info("a process for each of ", devices->size(), " devices; its key is in ", home->path(), "/",
           devices->front().name, devices->size() > 1 ? " and so on" : "");
  const auto codes = run_each(*options);
  if (!codes.ok()) return fail(codes.error());
  if (global.json) print_reports(*options, *codes);
  return std::ranges::max(*codes);
}

}  // namespace shoal
