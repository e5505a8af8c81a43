#include "dht/child_protocol.h"

#include <gtest/gtest.h>

#include "common/rng.h"

namespace shoal {
namespace {

std::string without_newline(std::string line) {
  EXPECT_EQ(line.back(), '\n');
  line.pop_back();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  return line;
}

TEST(ChildProtocolTest, CommandsComeBackAsTheyWere) {
  const PutCommand put{"shoal/1/x/stage/0", 0xfedcba9876543210ull, 65535, "{\"a\":\"line\nbreak\"}"};
  const auto back = parse_command(without_newline(pack_line(put)));
  ASSERT_TRUE(back.ok()) << back.error().message;
  const auto& command = std::get<PutCommand>(*back);
  EXPECT_EQ(command.key, put.key);
  EXPECT_EQ(command.id, put.id);
  EXPECT_EQ(command.serial, put.serial);
  EXPECT_EQ(command.text, put.text);
  const auto withdraw = parse_command(without_newline(pack_line(WithdrawCommand{"k", 9})));
  EXPECT_EQ(std::get<WithdrawCommand>(*withdraw).id, 9u);
  const auto get = parse_command(without_newline(pack_line(GetCommand{7, "k"})));
  EXPECT_EQ(std::get<GetCommand>(*get).tag, 7u);
  EXPECT_EQ(
      std::get<BootstrapCommand>(*parse_command(without_newline(pack_line(BootstrapCommand{"a.b:4222"})))).address,
      "a.b:4222");
}

TEST(ChildProtocolTest, EventsComeBackAsTheyWere) {
  EXPECT_EQ(std::get<ReadyEvent>(*parse_event(without_newline(pack_line(ReadyEvent{4222})))).port, 4222);
  const auto value = parse_event(without_newline(pack_line(ValueEvent{9, "{\"x\":1}"})));
  EXPECT_EQ(std::get<ValueEvent>(*value).tag, 9u);
  EXPECT_EQ(std::get<ValueEvent>(*value).text, "{\"x\":1}");
  EXPECT_EQ(std::get<DoneEvent>(*parse_event(without_newline(pack_line(DoneEvent{9})))).tag, 9u);
  const DhtStatus status{3, 2, 10, 4000, {"127.0.0.1:4222"}};
  const auto back = parse_event(without_newline(pack_line(status)));
  EXPECT_EQ(std::get<DhtStatus>(*back).good_nodes, 3u);
  EXPECT_EQ(std::get<DhtStatus>(*back).stored_bytes, 4000u);
  EXPECT_EQ(std::get<DhtStatus>(*back).nodes, status.nodes);
}

TEST(ChildProtocolTest, ASubvertedChildIsAnsweredWithErrorsOnly) {
  const std::string good = without_newline(pack_line(ValueEvent{9, "{\"x\":1}"}));
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse_event(good.substr(0, size)).ok());
  Rng rng(7);
  for (int round = 0; round < 5000; ++round) {
    std::string line = good;
    for (int edit = 0; edit < 3; ++edit) line[rng.below(line.size())] = static_cast<char>(rng.below(256));
    const auto event = parse_event(line);
    EXPECT_TRUE(event.ok() || event.code() == ErrorCode::kMalformed) << line;
  }
  EXPECT_EQ(parse_event("{\"ev\":\"value\",\"tag\":1,\"text\":\"" + std::string(600, 'x') + "\"}").code(),
            ErrorCode::kMalformed);
  EXPECT_EQ(parse_event("{\"ev\":\"ready\",\"port\":65536}").code(), ErrorCode::kMalformed);
  EXPECT_EQ(
      parse_event("{\"ev\":\"status\",\"good\":1,\"dubious\":0,\"values\":0,\"bytes\":0,\"nodes\":[\"0.0.0.0:1\"]}")
          .code(),
      ErrorCode::kMalformed);
  EXPECT_EQ(parse_event(std::string(5000, ' ')).code(), ErrorCode::kTooLarge);
  EXPECT_EQ(parse_event("{\"ev\":\"put\"}").code(), ErrorCode::kMalformed);
  EXPECT_EQ(parse_command("{\"op\":\"put\",\"key\":\"k\",\"id\":\"xyz\",\"serial\":1,\"text\":\"\"}").code(),
            ErrorCode::kMalformed);
}

TEST(LineBufferTest, CutsLinesHoweverTheyArrive) {
  const std::string stream = "one\ntwo\n\nthree\n";
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    LineBuffer buffer;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < stream.size(); at += piece)
      for (std::string& line : buffer.append(std::string_view(stream).substr(at, piece)))
        lines.push_back(std::move(line));
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "", "three"})) << piece;
  }
}

TEST(LineBufferTest, ALineWithoutEndIsDroppedAndHoldsNoMemory) {
  LineBuffer buffer;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(buffer.append(std::string(1000, 'x')).empty());
  EXPECT_EQ(buffer.append("tail\nnext\n"), std::vector<std::string>{"next"});
  const std::string full(kChildLineBytesMax, 'y');
  EXPECT_EQ(buffer.append(full + "\n"), std::vector<std::string>{full}) << "exactly at the limit";
}

}  // namespace
}  // namespace shoal
