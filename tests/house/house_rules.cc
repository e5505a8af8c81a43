#include "tests/house/house_rules.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "tests/house/class_rules.h"
#include "tests/house/code_rules.h"

namespace shoal {
namespace {

using Names = std::set<std::string, std::less<>>;

// What a cell of the page's column "may include" names: rooms by name, or "all above but" some.
Names rooms_in(const std::string& cell, const Names& above) {
  Names rooms;
  const bool all = cell.starts_with("all above but ");
  std::istringstream words(all ? cell.substr(14) : cell);
  for (std::string word; words >> word;) {
    if (word.ends_with(',')) word.pop_back();
    if (word != "–") rooms.insert(word);
  }
  if (!all) return rooms;
  Names rest = above;
  for (const std::string& room : rooms) rest.erase(room);
  return rest;
}

// Which rooms of ours a room may include besides itself: the table of docs/ARCHITECTURE.md, "Rooms". A room is a
// folder, or one of the folders in runtime/.
const std::map<std::string, Names, std::less<>>& arrows() {
  static const std::map<std::string, Names, std::less<>> table = [] {
    std::map<std::string, Names, std::less<>> rows;
    Names above;
    std::ifstream page(SHOAL_SOURCE_DIR "/docs/ARCHITECTURE.md");
    bool of_rooms = false;
    for (std::string line; std::getline(page, line);) {
      if (line.starts_with("## ")) of_rooms = line == "## Rooms";
      if (!of_rooms || !line.starts_with("| [")) continue;
      const std::string room = line.substr(3, line.find(']') - 3);
      const std::size_t last = line.rfind(" | ");
      rows[room] = rooms_in(line.substr(last + 3, line.size() - last - 5), above);
      above.insert(room);
    }
    return rows;
  }();
  return table;
}

// A library is recognised by how its headers begin. Product files that include it stand in one of these places (a
// folder, or the start of a path).
struct Library {
  std::string name;
  std::vector<std::string> prefixes;
  std::vector<std::string> places;
};
const std::vector<Library>& libraries() {
  static const std::vector<Library> table = {
      {"torch",
       {"torch/", "ATen/", "c10/"},
       {"stages/attention.cc", "stages/chunked_loss.cc", "stages/gpt2_layers.cc", "stages/host_step_math.cc",
        "stages/kernel_step_math.cc", "stages/llama_layers.cc", "stages/tensor_step_math.cc", "stages/torch_arena.cc",
        "stages/torch_device.cc", "stages/torch_executor.cc", "stages/torch_guard.cc", "stages/torch_memory.cc",
        "stages/torch_muon.cc", "stages/torch_screen.cc", "stages/torch_tensors.cc", "stages/torch_text.cc",
        "stages/torch_weights.cc"}},
      {"zmq", {"zmq.h", "zmq.hpp", "zmq_addon.hpp"}, {"transport/zmq/zmq_socket.cc", "cli/version.cc"}},
      {"msgpack", {"msgpack.hpp", "msgpack/", "msgpack.h"}, {"transport/envelope.cc"}},
      {"opendht", {"opendht.h", "opendht/"}, {"dht/opendht_member.cc"}},
      {"spdlog", {"spdlog/"}, {"common/log_spdlog.cc"}},
      {"sodium",
       {"sodium.h", "sodium/"},
       {"common/crypto/hash.cc", "common/crypto/sign.cc", "transport/zmq/zmq_engine_lanes.cc"}},
      {"toml", {"toml++/", "toml.hpp"}, {"layout/peer_list.cc", "runtime/config/config_text.cc"}},
      {"CLI11", {"CLI/"}, {"cli/", "sim/main.cc", "dht/child_main.cc"}},
      {"json",
       {"nlohmann/"},
       {"dht/", "stages/pretrained/", "events/", "page/", "runtime/", "sim/main.cc", "sim/scale.cc", "demo/", "cli/",
        "text/"}},
      {"highway", {"hwy/"}, {"kernels/"}},
      {"pcre2", {"pcre2.h"}, {"text/split_pattern.cc"}},
      {"utf8proc", {"utf8proc.h"}, {"text/normaliser.cc"}},
      {"zlib", {"zlib.h"}, {"common/packed/"}},
      {"zstd", {"zstd.h"}, {"common/packed/"}},
      {"libmicrohttpd", {"microhttpd.h"}, {"page/loopback_http.cc"}},
      {"prometheus-cpp", {"prometheus/"}, {"page/run_metrics.cc"}},
      {"CUDA", {"cuda_runtime.h", "cuda_runtime_api.h"}, {"kernels/"}},
  };
  return table;
}

// Headers of the system with a suffix; those of the C++ library have none.
const std::vector<std::string> kSystemFolders = {"arpa/", "linux/", "net/", "netinet/", "sys/"};
const Names kSystemHeaders = {"dlfcn.h",     "fcntl.h",     "ifaddrs.h", "malloc.h", "netdb.h",
                              "nmmintrin.h", "poll.h",      "pthread.h", "sched.h",  "signal.h",
                              "spawn.h",     "stdio_ext.h", "stdlib.h",  "unistd.h", "wmmintrin.h"};

// What only cli/ hands in, and tests make: the rest sees the seam in front of it.
struct Production {
  std::string header;
  std::vector<std::string> hidden_from;
};
const std::vector<Production> kProduction = {{"stages/torch_executor.h", {"runtime/", "sim/"}}};

// Headers that cost seconds of compile time a file; the narrow ones beside them do.
const Names kHeavyHeaders = {"torch/torch.h",  "torch/all.h",   "torch/extension.h",
                             "torch/script.h", "torch/types.h", "ATen/ATen.h"};
const Names kVagueNames = {"worker", "server", "client", "node", "master", "manager", "handler",
                           "helper", "util",   "utils",  "data", "info",   "process"};
constexpr std::array<std::string_view, 3> kFreeFolders = {"tests", "bench", "examples"};

bool starts_with_any(std::string_view text, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

const Library* library_of(std::string_view include) {
  for (const Library& library : libraries()) {
    if (starts_with_any(include, library.prefixes)) return &library;
  }
  return nullptr;
}

std::string first_folder(std::string_view path) {
  const std::size_t slash = path.find('/');
  return std::string(slash == std::string_view::npos ? std::string_view() : path.substr(0, slash));
}

// The room that a path stands in: the deepest of its folders that has a row above, else its first folder.
std::string room_of(std::string_view path) {
  for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string_view folder = path.substr(0, slash);
    if (arrows().contains(folder)) return std::string(folder);
  }
  return first_folder(path);
}

bool is_free(std::string_view folder) {
  return std::find(kFreeFolders.begin(), kFreeFolders.end(), folder) != kFreeFolders.end();
}

bool is_header(std::string_view path) { return path.ends_with(".h") || path.ends_with(".cuh"); }

void judge_name(const std::string& path, std::vector<Violation>& found) {
  std::istringstream words(std::filesystem::path(path).stem().string());
  for (std::string word; std::getline(words, word, '_');) {
    if (kVagueNames.contains(word))
      found.push_back({path, 0, "'" + word + "' in a file's name says nothing; name the thing"});
  }
}

bool is_known(const IncludeLine& include) {
  if (!include.angled || include.path.find('.') == std::string::npos) return true;
  return starts_with_any(include.path, kSystemFolders) || kSystemHeaders.contains(include.path);
}

void judge_include(const std::string& path, const IncludeLine& include, std::vector<Violation>& found) {
  const std::string folder = room_of(path);
  const std::string target = room_of(include.path);
  if (kHeavyHeaders.contains(include.path)) {
    found.push_back({path, include.line, "<" + include.path + "> costs seconds a file; include the narrow headers"});
  }
  if (is_free(first_folder(path))) return;
  if (("/" + include.path + "/").find("/../") != std::string::npos)
    found.push_back({path, include.line, "\"..\" in an include; write it from the root"});
  if (const Library* library = library_of(include.path)) {
    if (is_header(path)) found.push_back({path, include.line, library->name + " in a header of ours"});
    if (!starts_with_any(path, library->places)) {
      found.push_back({path, include.line, library->name + " is not included in this place"});
    }
    return;
  }
  if (!is_known(include)) found.push_back({path, include.line, "<" + include.path + "> belongs to no library we know"});
  for (const Production& production : kProduction) {
    if (include.path == production.header && starts_with_any(path, production.hidden_from))
      found.push_back({path, include.line, include.path + " is handed in by cli/, behind its seam"});
  }
  if (is_free(first_folder(include.path))) {
    found.push_back({path, include.line, "product code includes " + target + "/"});
  } else if (arrows().contains(target) && target != folder && !arrows().at(folder).contains(target)) {
    found.push_back({path, include.line, "no arrow from " + folder + " to " + target});
  }
}

std::optional<std::string> read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::vector<IncludeLine> includes_of(std::string_view text) {
  std::vector<IncludeLine> found;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    ++number;
    const auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
    skip_blanks();
    if (!line.starts_with('#')) continue;
    line.remove_prefix(1);
    skip_blanks();
    if (!line.starts_with("include")) continue;
    line.remove_prefix(7);
    skip_blanks();
    if (!line.starts_with('"') && !line.starts_with('<')) continue;
    const std::size_t close = line.find(line[0] == '"' ? '"' : '>', 1);
    if (close != std::string_view::npos)
      found.push_back({number, std::string(line.substr(1, close - 1)), line[0] == '<'});
  }
  return found;
}

std::vector<Violation> judge_file(const std::string& path, std::string_view text) {
  std::vector<Violation> found;
  const std::string folder = room_of(path);
  if (!arrows().contains(folder) && !is_free(first_folder(path))) {
    found.push_back({path, 0, "this folder has no place among the arrows"});
    return found;
  }
  judge_name(path, found);
  Names seen;
  for (const IncludeLine& include : includes_of(text)) {
    judge_include(path, include, found);
    if (const Library* library = library_of(include.path)) seen.insert(library->name);
  }
  // torch bundles a newer fmt than the one that the system's spdlog is built for.
  if (seen.contains("torch") && seen.contains("spdlog")) found.push_back({path, 0, "torch and spdlog in one file"});
  if (path.ends_with(".cu") && seen.contains("torch")) found.push_back({path, 0, "torch in a CUDA file"});
  if (is_header(path) && text.find("#pragma once") == std::string_view::npos)
    found.push_back({path, 0, "no #pragma once"});
  return found;
}

std::vector<Violation> judge_tree(const std::string& root, int* files_read) {
  static const Names kExtensions = {".h", ".cc", ".cu", ".cuh"};
  std::vector<std::string> folders(kFreeFolders.begin(), kFreeFolders.end());
  for (const auto& [room, targets] : arrows()) {
    const std::string top = first_folder(room + "/");
    if (std::find(folders.begin(), folders.end(), top) == folders.end()) folders.push_back(top);
  }
  std::vector<Violation> found;
  std::map<std::string, std::string> product;
  *files_read = 0;
  for (const std::string& folder : folders) {
    const std::filesystem::path start = std::filesystem::path(root) / folder;
    if (!std::filesystem::is_directory(start)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(start)) {
      if (!entry.is_regular_file() || !kExtensions.contains(entry.path().extension().string())) continue;
      const std::string path = std::filesystem::relative(entry.path(), root).generic_string();
      const auto text = read_whole(entry.path());
      if (!text) {
        found.push_back({path, 0, "cannot be read"});
        continue;
      }
      ++*files_read;
      for (auto* judge : {judge_file, judge_code, judge_comments}) {
        for (Violation& violation : judge(path, *text)) found.push_back(std::move(violation));
      }
      if (!is_free(first_folder(path))) product[path] = *text;
    }
  }
  for (Violation& violation : judge_classes(product)) found.push_back(std::move(violation));
  for (const std::filesystem::path& folder : {std::filesystem::path(root), std::filesystem::path(root) / "docs"})
    for (const auto& page : std::filesystem::directory_iterator(folder)) {
      if (page.path().extension() != ".md") continue;
      const std::string path = std::filesystem::relative(page.path(), root).generic_string();
      if (const auto text = read_whole(page.path()))
        for (Violation& violation : judge_comments(path, *text)) found.push_back(std::move(violation));
    }
  return found;
}

}  // namespace shoal
