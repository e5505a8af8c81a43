#include "dht/opendht_member.h"

#include <opendht.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <set>
#include <unordered_set>

#include "common/os/thread_loop.h"
#include "dht/record.h"

namespace shoal {
namespace {

constexpr dht::ValueType::Id kRecordType = 0x5348;
constexpr const char* kUserType = "text/plain";  // makes every DHT tool print it

std::string text_of(const dht::Value& value) { return {value.data.begin(), value.data.end()}; }

bool may_store(const dht::InfoHash& key, const std::shared_ptr<dht::Value>& value) {
  if (!value || value->data.size() > kRecordBytesMax || value->user_type != kUserType) return false;
  const auto record = parse_any_record(text_of(*value));
  if (!record.ok()) return false;
  const WallTime now = wall_now(), expires = expires_of(*record);
  return dht::InfoHash::get(key_of(*record)) == key && is_live(expires, now) && !is_from_future(expires, now);
}

// Ids are chosen by the putter and can be copied by anybody: only a newer record of the same signer replaces one.
bool may_replace(const dht::InfoHash& key, const std::shared_ptr<dht::Value>& old_value,
                 const std::shared_ptr<dht::Value>& value) {
  if (!may_store(key, value)) return false;
  if (value->data == old_value->data) return true;
  const auto before = parse_any_record(text_of(*old_value));
  if (!before.ok()) return true;
  const auto after = parse_any_record(text_of(*value));
  return signer_of(*after) == signer_of(*before) && sequence_of(*after) > sequence_of(*before);
}

dht::ValueType record_type() {
  dht::ValueType type(kRecordType, "shoal record", std::chrono::duration_cast<dht::duration>(kRecordTtl));
  type.storePolicy = [](dht::InfoHash key, std::shared_ptr<dht::Value>& value, const dht::InfoHash&,
                        const dht::SockAddr&) { return may_store(key, value); };
  type.editPolicy = [](dht::InfoHash key, const std::shared_ptr<dht::Value>& old_value,
                       std::shared_ptr<dht::Value>& value, const dht::InfoHash&,
                       const dht::SockAddr&) { return may_replace(key, old_value, value); };
  return type;
}

// Collects the distinct values of one get. OpenDHT may still call with values after it said that it is done.
struct Collector {
  std::mutex mutex;
  std::unordered_set<std::string> seen;
  std::function<void(const std::string&)> value;
  std::function<void()> done;

  bool take(const std::vector<std::shared_ptr<dht::Value>>& values) {
    const std::lock_guard lock(mutex);
    for (const auto& item : values) {
      if (!value || seen.size() >= kValuesPerGetMax) return false;
      if (!item || item->data.empty() || item->data.size() > kRecordBytesMax) continue;
      std::string text = text_of(*item);
      if (!parse_any_record(text).ok() || !seen.insert(text).second) continue;
      value(text);
    }
    return true;
  }
  void finish() {
    const std::lock_guard lock(mutex);
    if (!value) return;
    value = nullptr;
    done();
  }
};

class OpenDht final : public OpenDhtMember {
 public:
  ~OpenDht() override { runner_.join(); }

  void run(const OpenDhtOptions& options) {
    dht::DhtRunner::Config config;
    auto& node = config.dht_config.node_config;
    node.network = options.network;
    node.max_req_per_sec = options.requests_per_second;
    node.max_peer_req_per_sec = options.requests_per_address;
    node.max_searches = options.searches;
    node.max_store_size = options.store_bytes;
    const auto found = dht::SockAddr::resolve(options.bind, std::to_string(options.port));
    if (found.empty()) throw std::runtime_error("no address " + options.bind);
    (found.front().getFamily() == AF_INET6 ? config.bind6 : config.bind4) = found.front();
    family_ = found.front().getFamily();
    config.threaded = true;
    runner_.run(config, dht::DhtRunner::Context());
    runner_.registerType(record_type());
  }

  std::uint16_t port() const override { return runner_.getBoundPort(family_); }

  void put(const PutCommand& command) override {
    const auto key = dht::InfoHash::get(command.key);
    auto value = std::make_shared<dht::Value>();
    value->id = command.id;
    value->type = kRecordType;
    value->seq = command.serial;
    value->user_type = kUserType;
    value->data.assign(command.text.begin(), command.text.end());
    runner_.put(key, value, dht::DoneCallback{}, dht::time_point::max(), true);
  }

  void withdraw(const WithdrawCommand& command) override {
    runner_.cancelPut(dht::InfoHash::get(command.key), command.id);
  }

  void get(const std::string& key, std::function<void(const std::string&)> value, std::function<void()> done) override {
    auto collector = std::make_shared<Collector>();
    collector->value = std::move(value);
    collector->done = std::move(done);
    runner_.get(
        dht::InfoHash::get(key),
        [collector](const std::vector<std::shared_ptr<dht::Value>>& values) { return collector->take(values); },
        [collector](bool) { collector->finish(); });
  }

  void bootstrap(const std::string& address) override {
    const auto colon = address.rfind(':');
    std::string host = address.substr(0, colon);
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    runner_.bootstrap(host, address.substr(colon + 1));
  }

  DhtStatus status() const override {
    DhtStatus out;
    for (const sa_family_t family : {sa_family_t{AF_INET}, sa_family_t{AF_INET6}}) {
      const dht::NodeStats stats = runner_.getNodesStats(family);
      out.good_nodes += stats.good_nodes;
      out.dubious_nodes += stats.dubious_nodes;
    }
    const auto [bytes, values] = runner_.getStoreSize();
    out.stored_bytes = bytes;
    out.stored_values = values;
    for (const dht::NodeExport& node : runner_.exportNodes()) {
      if (out.nodes.size() >= kChildNodesMax) break;
      const std::string address = dht::SockAddr(reinterpret_cast<const sockaddr*>(&node.ss), node.sslen).toString();
      if (check_address(address).ok()) out.nodes.push_back(address);
    }
    return out;
  }

 private:
  mutable dht::DhtRunner runner_;
  sa_family_t family_ = AF_INET;
};

}  // namespace

Result<std::unique_ptr<OpenDhtMember>> OpenDhtMember::start(const OpenDhtOptions& options) {
  if (options.network == 0)
    return make_error(ErrorCode::kInput, "network 0 is the public DHT: give a number of your own");
  try {
    auto node = std::make_unique<OpenDht>();
    node->run(options);
    if (options.port != 0 && node->port() != options.port)
      return make_error(ErrorCode::kIo, "UDP port " + std::to_string(options.port) + " is in use");
    return std::unique_ptr<OpenDhtMember>(std::move(node));
  } catch (const std::exception& e) {
    return make_error(ErrorCode::kIo,
                      "cannot open UDP " + options.bind + ":" + std::to_string(options.port) + ": " + e.what());
  }
}

}  // namespace shoal
