// What the DHT child says, which faces the network and may be subverted, and what it is told.
#include "dht/child_protocol.h"
#include "tests/fuzz/target.h"

namespace shoal::fuzz {
namespace {

std::string_view without_newline(const std::string& line) { return std::string_view(line).substr(0, line.size() - 1); }

bool take_line(std::string_view line) {
  const auto command = parse_command(line);
  if (command.ok()) {
    const std::string packed = pack_line(*command);
    SHOAL_CHECK(packed.find('\n') == packed.size() - 1);
    if (packed.size() <= kChildLineBytesMax) SHOAL_CHECK(parse_command(without_newline(packed)).ok());
  }
  const auto event = parse_event(line);
  if (event.ok()) {
    const std::string packed = pack_line(*event);
    SHOAL_CHECK(packed.find('\n') == packed.size() - 1);
    if (packed.size() <= kChildLineBytesMax) SHOAL_CHECK(parse_event(without_newline(packed)).ok());
  }
  return command.ok() || event.ok();
}

// The lines are the same, in whatever pieces they come.
bool take(ByteView bytes) {
  const std::string_view text = text_in(bytes);
  LineBuffer whole, halves;
  const std::vector<std::string> lines = whole.append(text);
  std::vector<std::string> pieced = halves.append(text.substr(0, text.size() / 2));
  for (std::string& line : halves.append(text.substr(text.size() / 2))) pieced.push_back(std::move(line));
  SHOAL_CHECK(pieced == lines);
  bool any = false;
  for (const std::string& line : lines) {
    SHOAL_CHECK_LE(line.size(), kChildLineBytesMax);
    any = take_line(line) || any;
  }
  return any;
}

std::vector<Bytes> seeds() {
  std::string commands, events;
  for (const ChildCommand& command :
       {ChildCommand(PutCommand{"shoal/1/x/stage/0", 9, 3, "{\"v\":1}"}), ChildCommand(WithdrawCommand{"k", 9}),
        ChildCommand(GetCommand{7, "k"}), ChildCommand(BootstrapCommand{"a.example:4222"})})
    commands += pack_line(command);
  for (const ChildEvent& event : {ChildEvent(ReadyEvent{4222}), ChildEvent(ValueEvent{9, "{\"v\":1}"}),
                                  ChildEvent(DoneEvent{9}), ChildEvent(DhtStatus{3, 2, 10, 4000, {"127.0.0.1:4222"}})})
    events += pack_line(event);
  return {Bytes::copy_of(commands), Bytes::copy_of(events)};
}

}  // namespace

const Target child_line{"child_line", take, seeds};

}  // namespace shoal::fuzz
