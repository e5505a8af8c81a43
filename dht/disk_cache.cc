#include "dht/disk_cache.h"

#include <nlohmann/json.hpp>

#include "dht/record.h"

namespace shoal {
namespace {

constexpr std::string_view kHead = "{\"shoal_cache\":1}";
constexpr std::size_t kLineBytesMax = kRecordBytesMax;
constexpr std::size_t kFileBytesMax = (kCacheRecordsMax + kCacheNodesMax + 1) * (kLineBytesMax + 1);

}  // namespace

std::string pack_cache(const CacheContent& content) {
  std::string text(kHead);
  text += '\n';
  std::size_t nodes = 0;
  for (const std::string& node : content.nodes) {
    if (!check_address(node).ok()) continue;
    if (++nodes > kCacheNodesMax) break;
    text += nlohmann::json{{"node", node}}.dump();
    text += '\n';
  }
  std::size_t records = 0;
  for (const std::string& record : content.records) {
    if (++records > kCacheRecordsMax) break;
    text += record;
    text += '\n';
  }
  return text;
}

CacheContent parse_cache(std::string_view text) {
  CacheContent content;
  const auto next_line = [&]() {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    return line;
  };
  if (next_line() != kHead) return content;
  while (!text.empty()) {
    const std::string_view line = next_line();
    if (line.empty() || line.size() > kLineBytesMax) continue;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    const auto node = json.find("node");
    if (node == json.end()) {
      if (content.records.size() < kCacheRecordsMax) content.records.emplace_back(line);
    } else if (node->is_string() && content.nodes.size() < kCacheNodesMax &&
               check_address(node->get<std::string>()).ok()) {
      content.nodes.push_back(node->get<std::string>());
    }
  }
  return content;
}

CacheContent DiskCache::load() const {
  if (storage_ == nullptr || path_.empty()) return {};
  const Result<Bytes> bytes = storage_->read(path_, kFileBytesMax);
  if (!bytes.ok()) return {};
  return parse_cache({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
}

void DiskCache::save(const CacheContent& content) {
  if (storage_ == nullptr || path_.empty()) return;
  if (state_->under_way) {
    state_->again = true;
    state_->next = pack_cache(content);
    return;
  }
  write(storage_, path_, state_, pack_cache(content));
}

void DiskCache::write(Storage* storage, const std::string& path, const std::shared_ptr<State>& state,
                      std::string text) {
  state->under_way = true;
  storage->replace(path, {Bytes::copy_of(std::string_view(text))}, [storage, path, state](Status status) {
    state->under_way = false;
    state->last = std::move(status);
    if (state->gone || !std::exchange(state->again, false)) return;
    write(storage, path, state, std::exchange(state->next, {}));
  });
}

}  // namespace shoal
