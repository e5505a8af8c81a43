#include "events/event_segments.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "common/os/posix_file.h"

namespace shoal {
namespace {

constexpr std::string_view kEnding = ".jsonl", kPacked = ".zst";
constexpr std::size_t kDigitsMin = 4, kDigitsMax = 12;

struct Name {
  std::string file;          // FILE.jsonl
  std::uint64_t number = 0;  // of the segment; 0: what is written
};

// Null: it is of no event file.
std::optional<Name> name_in(std::string_view name) {
  if (name.ends_with(kEnding)) return Name{std::string(name)};
  if (name.ends_with(kPacked)) name.remove_suffix(kPacked.size());
  const std::size_t dot = name.rfind('.');
  if (dot == name.npos || !name.substr(0, dot).ends_with(kEnding)) return std::nullopt;
  const std::string digits(name.substr(dot + 1));
  if (digits.size() < kDigitsMin || digits.size() > kDigitsMax ||
      digits.find_first_not_of("0123456789") != digits.npos || std::stoull(digits) == 0)
    return std::nullopt;
  return Name{std::string(name.substr(0, dot)), std::stoull(digits)};
}

using Numbered = std::map<std::string, std::set<std::uint64_t>, std::less<>>;  // by FILE.jsonl

Result<Numbered> names_in(const std::string& folder) {
  Numbered files;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure))
    if (const auto name = name_in(entry.path().filename().string()); name && entry.is_regular_file(failure))
      files[name->file].insert(name->number);
  if (failure) return error_of_errno("read the folder", folder, failure.value());
  return files;
}

EventFile file_of(const std::string& path, const std::set<std::uint64_t>& numbers) {
  EventFile file{.path = path};
  for (std::uint64_t number = 1; !numbers.empty() && number <= *numbers.rbegin(); ++number) {
    if (!numbers.contains(number)) {
      file.lacks.push_back(number);
      continue;
    }
    // While it is packed, or where that was cut short, it is there twice.
    const std::string segment = segment_path(path, number);
    file.parts.push_back(std::filesystem::exists(segment) ? segment : packed_segment(segment));
  }
  if (numbers.contains(0)) file.parts.push_back(path);
  return file;
}

}  // namespace

std::string segment_path(const std::string& path, std::uint64_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, kDigitsMin - std::min(kDigitsMin, digits.size()), '0');
  return path + "." + digits;
}

std::string packed_segment(const std::string& segment) { return segment + std::string(kPacked); }

Result<std::vector<EventFile>> event_files_in(const std::string& folder) {
  SHOAL_ASSIGN(const Numbered files, names_in(folder));
  std::vector<EventFile> found;
  for (const auto& [name, numbers] : files)
    found.push_back(file_of((std::filesystem::path(folder) / name).string(), numbers));
  return found;
}

Result<EventFile> event_file_at(const std::string& path) {
  const std::filesystem::path whole(path);
  SHOAL_ASSIGN(const Numbered files, names_in(whole.has_parent_path() ? whole.parent_path().string() : "."));
  const auto found = files.find(whole.filename().string());
  return found == files.end() ? EventFile{.path = path} : file_of(path, found->second);
}

std::uint64_t newest_segment(const EventFile& file) {
  return file.lacks.size() + file.parts.size() - (!file.parts.empty() && file.parts.back() == file.path ? 1 : 0);
}

std::vector<std::string> segments_behind(const EventFile& file, std::uint64_t number) {
  std::vector<std::string> behind;
  auto part = file.parts.begin();
  for (std::uint64_t at = 1; at <= newest_segment(file); ++at) {
    if (std::find(file.lacks.begin(), file.lacks.end(), at) != file.lacks.end()) continue;
    if (at > number) behind.push_back(*part);
    ++part;
  }
  return behind;
}

}  // namespace shoal
