// shoal version [--verbose] [--licences]: what this program is made of, under which licences, and what it runs on.
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <zmq.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>

#include "cli/program.h"
#include "common/os/executable.h"
#include "common/program/outcome.h"
#include "kernels/device.h"
#include "stages/torch_device.h"
#include "transport/limits.h"

namespace shoal {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

std::string vector_extensions() {
  std::string text;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) text += "sse4.2 ";
  if (__builtin_cpu_supports("avx2")) text += "avx2 ";
  if (__builtin_cpu_supports("avx512f")) text += "avx512f ";
#endif
  return text.empty() ? "none known" : text.substr(0, text.size() - 1);
}

Facts machine_facts() {
  Facts facts = {{"cpu", processor_name()},
                 {"cpu threads", std::to_string(std::thread::hardware_concurrency())},
                 {"cpu extensions", vector_extensions()}};
  const char* const policy = std::getenv(kWaitPolicy);
  facts.emplace_back("cpu threads wait", policy == nullptr ? std::string("asleep (") + kWaitPolicy + "=PASSIVE)"
                                                           : std::string("as ") + kWaitPolicy + "=" + policy + " says");
  struct sysinfo memory;
  if (sysinfo(&memory) == 0)
    facts.emplace_back("memory MiB", std::to_string((memory.totalram * memory.mem_unit) >> 20));
  utsname system;
  if (uname(&system) == 0)
    facts.emplace_back("system", std::string(system.sysname) + " " + system.release + " " + system.machine);
  return facts;
}

Facts library_facts() {
  int major = 0, minor = 0, patch = 0;
  zmq_version(&major, &minor, &patch);
  return {{"compiler", "g++ " __VERSION__},
          {"ZeroMQ", std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch)},
          {"msgpack-c", SHOAL_MSGPACK_VERSION},
          {"spdlog", SHOAL_SPDLOG_VERSION},
          {"toml++", SHOAL_TOML_VERSION},
          {"nlohmann-json", SHOAL_JSON_VERSION},
          {"CLI11", version_of_cli11()},
          {"libsodium", SHOAL_SODIUM_VERSION},
          {"OpenDHT (in shoal-dht)", SHOAL_OPENDHT_VERSION},
          {"Highway", SHOAL_HWY_VERSION},
          {"PCRE2", SHOAL_PCRE2_VERSION},
          {"utf8proc", SHOAL_UTF8PROC_VERSION},
          {"zlib", SHOAL_ZLIB_VERSION},
          {"Zstandard", SHOAL_ZSTD_VERSION}};
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

// What a package brought beside its programs (packaging/licences).
int run_licences() {
  const Result<std::string> folder = beside_own_program("../../share/doc/shoal/licences");
  std::ifstream index(folder.ok() ? *folder + "/INDEX" : "");
  std::printf("shoal: Apache-2.0; shoal-dht, which links OpenDHT: GPL-3+\n");
  for (std::string line; std::getline(index, line);) std::printf("%s\n", line.c_str());
  if (index.is_open()) {
    std::printf("The texts: %s\n", folder->c_str());
  } else {
    std::printf(
        "The libraries are this system's, and so are their licences: on Debian /usr/share/doc/PACKAGE/copyright\n");
  }
  return kExitOk;
}

int run(const GlobalOptions& global) {
  const std::string kernels = cuda_kernels_text();
  Facts facts = {
      {"shoal", SHOAL_VERSION}, {"protocol", std::to_string(limits::kProtocolVersion)}, {"CUDA kernels", kernels}};
  if (global.verbose > 0) {
    for (const Facts& more : {library_facts(), machine_facts(), device_facts()})
      facts.insert(facts.end(), more.begin(), more.end());
  }
  if (global.json) {
    std::printf("{\"schema\":\"shoal.version/1\"");
    for (const auto& [name, value] : facts) std::printf(",%s:%s", quoted(name).c_str(), quoted(value).c_str());
    std::printf("}\n");
  } else if (global.verbose == 0) {
    std::printf("%s\nCUDA kernels %s\n", version_line().c_str(), kernels.c_str());
  } else {
    for (const auto& [name, value] : facts) std::printf("%-24s %s\n", name.c_str(), value.c_str());
  }
  return kExitOk;
}

}  // namespace

std::string version_line() {
  return std::string("shoal ") + SHOAL_VERSION + " (protocol " + std::to_string(limits::kProtocolVersion) + ")";
}

void add_version(Command& app, Program& program) {
  Command command =
      app.add_subcommand("version", "version, protocol, CUDA kernels; with --verbose libraries, CPU and GPU");
  auto licences = std::make_shared<bool>(false);
  command.add_flag("--licences", *licences,
                   "the licences of the libraries that a package brings, and where their texts are");
  run_when_named(command, program,
                 [licences](const GlobalOptions& global) { return *licences ? run_licences() : run(global); });
}

}  // namespace shoal
