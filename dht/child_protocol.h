#pragma once
// What the supervisor and its child say to each other: one JSON object a line over a socket pair. The child faces the
// network and may be subverted, so both sides bound every line and check every field.
//   to the child:   {"op":"put","key":K,"id":"16 hex","serial":N,"text":T}   {"op":"withdraw","key":K,"id":I}
//                   {"op":"get","tag":N,"key":K}   {"op":"bootstrap","address":"host:port"}
//   from it:        {"ev":"ready","port":N}   {"ev":"value","tag":N,"text":T}   {"ev":"done","tag":N}
//                   {"ev":"status","good":N,"dubious":N,"values":N,"bytes":N,"nodes":[...]}     every second or sooner
// Pure; thread: any.   ERRORS of parsing: kMalformed, kTooLarge.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/result.h"
#include "dht/dht_access.h"

namespace shoal {

inline constexpr std::size_t kChildLineBytesMax = 4096;
inline constexpr std::size_t kChildKeyBytesMax = 256;
inline constexpr std::size_t kChildNodesMax = 32;
inline constexpr std::size_t kValuesPerGetMax = 256;

struct PutCommand {
  std::string key;
  std::uint64_t id = 0;
  std::uint16_t serial = 0;
  std::string text;
};
struct WithdrawCommand {
  std::string key;
  std::uint64_t id = 0;
};
struct GetCommand {
  std::uint64_t tag = 0;
  std::string key;
};
struct BootstrapCommand {
  std::string address;
};
using ChildCommand = std::variant<PutCommand, WithdrawCommand, GetCommand, BootstrapCommand>;

struct ReadyEvent {
  std::uint16_t port = 0;
};
struct ValueEvent {
  std::uint64_t tag = 0;
  std::string text;
};
struct DoneEvent {
  std::uint64_t tag = 0;
};
using ChildEvent = std::variant<ReadyEvent, ValueEvent, DoneEvent, DhtStatus>;

// With the newline.
std::string pack_line(const ChildCommand& command);
std::string pack_line(const ChildEvent& event);
// Without the newline.
Result<ChildCommand> parse_command(std::string_view line);
Result<ChildEvent> parse_event(std::string_view line);

// Cuts a stream of bytes into lines. A line over the limit is dropped whole.
class LineBuffer {
 public:
  // The lines that `bytes` completes, without their newlines.
  std::vector<std::string> append(std::string_view bytes);

 private:
  std::string partial_;
  bool skipping_ = false;
};

}  // namespace shoal
