#include "dht/child_protocol.h"

#include <nlohmann/json.hpp>

#include "common/hex.h"
#include "dht/record.h"

namespace shoal {
namespace {

using Json = nlohmann::ordered_json;

Error malformed(const std::string& what) { return make_error(ErrorCode::kMalformed, "DHT child: " + what); }

std::string line_of(const Json& json) {
  // Texts of ours are ASCII; whatever else came in is replaced rather than thrown about.
  return json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Result<Json> parse_object(std::string_view line) {
  if (line.size() > kChildLineBytesMax) return make_error(ErrorCode::kTooLarge, "DHT child: a line over 4096 bytes");
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return malformed("a line that is no JSON object");
  return json;
}

Result<std::uint64_t> number(const Json& json, const char* key, std::uint64_t max) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() > max)
    return malformed(std::string("no number \"") + key + "\" in range");
  return found->get<std::uint64_t>();
}

Result<std::string> text_at(const Json& json, const char* key, std::size_t bytes_max) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return malformed(std::string("no text \"") + key + "\"");
  auto text = found->get<std::string>();
  if (text.size() > bytes_max) return malformed(std::string("\"") + key + "\" is too long");
  return text;
}

Result<std::uint64_t> id_at(const Json& json) {
  SHOAL_ASSIGN(const std::string text, text_at(json, "id", 16));
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return malformed("\"id\" is not 16 hex digits");
  return std::stoull(text, nullptr, 16);
}

Result<DhtStatus> read_status(const Json& json) {
  DhtStatus status;
  SHOAL_ASSIGN(const std::uint64_t good, number(json, "good", UINT32_MAX));
  SHOAL_ASSIGN(const std::uint64_t dubious, number(json, "dubious", UINT32_MAX));
  status.good_nodes = static_cast<std::uint32_t>(good);
  status.dubious_nodes = static_cast<std::uint32_t>(dubious);
  SHOAL_ASSIGN(status.stored_values, number(json, "values", UINT64_MAX));
  SHOAL_ASSIGN(status.stored_bytes, number(json, "bytes", UINT64_MAX));
  const auto nodes = json.find("nodes");
  if (nodes == json.end() || !nodes->is_array() || nodes->size() > kChildNodesMax)
    return malformed("no list \"nodes\"");
  for (const Json& node : *nodes) {
    if (!node.is_string() || !check_address(node.get<std::string>()).ok()) return malformed("a node is no address");
    status.nodes.push_back(node.get<std::string>());
  }
  return status;
}

}  // namespace

std::string pack_line(const ChildCommand& command) {
  Json json;
  if (const auto* put = std::get_if<PutCommand>(&command)) {
    json["op"] = "put";
    json["key"] = put->key;
    json["id"] = hex_of_word(put->id);
    json["serial"] = put->serial;
    json["text"] = put->text;
  } else if (const auto* withdraw = std::get_if<WithdrawCommand>(&command)) {
    json["op"] = "withdraw";
    json["key"] = withdraw->key;
    json["id"] = hex_of_word(withdraw->id);
  } else if (const auto* get = std::get_if<GetCommand>(&command)) {
    json["op"] = "get";
    json["tag"] = get->tag;
    json["key"] = get->key;
  } else {
    json["op"] = "bootstrap";
    json["address"] = std::get<BootstrapCommand>(command).address;
  }
  return line_of(json);
}

std::string pack_line(const ChildEvent& event) {
  Json json;
  if (const auto* ready = std::get_if<ReadyEvent>(&event)) {
    json["ev"] = "ready";
    json["port"] = ready->port;
  } else if (const auto* value = std::get_if<ValueEvent>(&event)) {
    json["ev"] = "value";
    json["tag"] = value->tag;
    json["text"] = value->text;
  } else if (const auto* done = std::get_if<DoneEvent>(&event)) {
    json["ev"] = "done";
    json["tag"] = done->tag;
  } else {
    const auto& status = std::get<DhtStatus>(event);
    json["ev"] = "status";
    json["good"] = status.good_nodes;
    json["dubious"] = status.dubious_nodes;
    json["values"] = status.stored_values;
    json["bytes"] = status.stored_bytes;
    json["nodes"] = status.nodes;
  }
  return line_of(json);
}

Result<ChildCommand> parse_command(std::string_view line) {
  SHOAL_ASSIGN(const Json json, parse_object(line));
  SHOAL_ASSIGN(const std::string op, text_at(json, "op", 16));
  if (op == "put") {
    PutCommand put;
    SHOAL_ASSIGN(put.key, text_at(json, "key", kChildKeyBytesMax));
    SHOAL_ASSIGN(put.id, id_at(json));
    SHOAL_ASSIGN(const std::uint64_t serial, number(json, "serial", UINT16_MAX));
    put.serial = static_cast<std::uint16_t>(serial);
    SHOAL_ASSIGN(put.text, text_at(json, "text", kRecordBytesMax));
    return ChildCommand(std::move(put));
  }
  if (op == "withdraw") {
    WithdrawCommand withdraw;
    SHOAL_ASSIGN(withdraw.key, text_at(json, "key", kChildKeyBytesMax));
    SHOAL_ASSIGN(withdraw.id, id_at(json));
    return ChildCommand(std::move(withdraw));
  }
  if (op == "get") {
    GetCommand get;
    SHOAL_ASSIGN(get.tag, number(json, "tag", UINT64_MAX));
    SHOAL_ASSIGN(get.key, text_at(json, "key", kChildKeyBytesMax));
    return ChildCommand(std::move(get));
  }
  if (op == "bootstrap") {
    BootstrapCommand bootstrap;
    SHOAL_ASSIGN(bootstrap.address, text_at(json, "address", kRecordAddressBytesMax));
    SHOAL_TRY(check_address(bootstrap.address));
    return ChildCommand(std::move(bootstrap));
  }
  return malformed("unknown command");
}

Result<ChildEvent> parse_event(std::string_view line) {
  SHOAL_ASSIGN(const Json json, parse_object(line));
  SHOAL_ASSIGN(const std::string ev, text_at(json, "ev", 16));
  if (ev == "ready") {
    SHOAL_ASSIGN(const std::uint64_t port, number(json, "port", UINT16_MAX));
    return ChildEvent(ReadyEvent{static_cast<std::uint16_t>(port)});
  }
  if (ev == "value") {
    ValueEvent value;
    SHOAL_ASSIGN(value.tag, number(json, "tag", UINT64_MAX));
    SHOAL_ASSIGN(value.text, text_at(json, "text", kRecordBytesMax));
    return ChildEvent(std::move(value));
  }
  if (ev == "done") {
    SHOAL_ASSIGN(const std::uint64_t tag, number(json, "tag", UINT64_MAX));
    return ChildEvent(DoneEvent{tag});
  }
  if (ev == "status") {
    SHOAL_ASSIGN(DhtStatus status, read_status(json));
    return ChildEvent(std::move(status));
  }
  return malformed("unknown event");
}

std::vector<std::string> LineBuffer::append(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (!skipping_ && partial_.size() + piece.size() > kChildLineBytesMax) {
      skipping_ = true;
      partial_.clear();
    }
    if (!skipping_) partial_ += piece;
    if (end == std::string_view::npos) break;
    if (!skipping_) lines.push_back(std::move(partial_));
    partial_.clear();
    skipping_ = false;
    bytes = bytes.substr(end + 1);
  }
  return lines;
}

}  // namespace shoal
