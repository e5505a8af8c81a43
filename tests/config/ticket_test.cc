#include "runtime/config/ticket.h"

#include <gmock/gmock.h>

#include "common/rng.h"

namespace shoal {
namespace {

using testing::HasSubstr;

template <class Key>
Key key_of(std::uint8_t first) {
  Key key;
  for (std::size_t i = 0; i < 32; ++i) key.bytes[i] = static_cast<std::uint8_t>(first + i);
  return key;
}

Ticket sample_ticket() {
  return {.run = key_of<RunId>(1),
          .network = 0x12345678,
          .contacts = {{key_of<PeerId>(1), "198.51.100.7:7741"},
                       {key_of<PeerId>(90), "[2001:db8::17]:443"},
                       {key_of<PeerId>(1), "swarm.example.org:65535"}}};
}

TEST(TicketTest, ReadsBackWhatItPacked) {
  const auto text = pack_ticket(sample_ticket());
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_TRUE(text->starts_with("shoal1:"));
  const auto ticket = parse_ticket("  " + *text + " \n");
  ASSERT_TRUE(ticket.ok()) << ticket.error().message;
  EXPECT_EQ(*ticket, sample_ticket());
}

TEST(TicketTest, GoldenTextStaysReadable) {
  const Ticket ticket{.run = key_of<RunId>(0), .network = 7, .contacts = {{key_of<PeerId>(0), "127.0.0.1:7741"}}};
  EXPECT_EQ(*pack_ticket(ticket), "shoal1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAAAHARR_AAABHj21yQHN");
}

// The kind of a contact over a relay is 32 more: 52 and not 20.
TEST(TicketTest, NamesARelayThatTheRunIsCalledAt) {
  const Ticket ticket{.run = key_of<RunId>(0),
                      .network = 7,
                      .contacts = {{key_of<PeerId>(0), "via/127.0.0.1:7741"},
                                   {key_of<PeerId>(90), "via/[2001:db8::17]:443"},
                                   {key_of<PeerId>(0), "via/relay.example.org:443"}}};
  EXPECT_EQ(*parse_ticket(*pack_ticket(ticket)), ticket);
  const Ticket one{.run = ticket.run, .network = 7, .contacts = {ticket.contacts.front()}};
  EXPECT_EQ(*pack_ticket(one), "shoal1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAAAHATR_AAABHj2IkoJw");
}

TEST(TicketTest, ThreeForeignContactsFit) {
  Ticket ticket = sample_ticket();
  for (std::uint8_t i = 0; i < 3; ++i)
    ticket.contacts[i] = {key_of<PeerId>(static_cast<std::uint8_t>(50 + i)), "[2001:db8:1:2:3:4:5:6]:65535"};
  const auto text = pack_ticket(ticket);
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_LE(text->size(), kTicketCharactersMax);
}

TEST(TicketTest, CallsEveryTypoATypo) {
  const std::string text = *pack_ticket(sample_ticket());
  for (std::size_t i = 7; i < text.size(); ++i) {
    std::string typo = text;
    typo[i] = typo[i] == 'x' ? 'y' : 'x';
    const auto ticket = parse_ticket(typo);
    ASSERT_FALSE(ticket.ok()) << i;
    EXPECT_EQ(ticket.code(), ErrorCode::kCorrupt);
    EXPECT_THAT(ticket.error().message, HasSubstr("typo"));
  }
}

TEST(TicketTest, ReadsWhatWasCopiedWithWhatStandsAroundIt) {
  const Ticket ticket = sample_ticket();
  const std::string text = *pack_ticket(ticket);
  std::string wrapped = text;
  for (std::size_t at = 60; at < wrapped.size(); at += 62) wrapped.insert(at, "\r\n");
  for (const std::string& copied :
       {"ticket " + text, "\"" + text + "\"", "'" + text + "'", "<" + text + ">", "ticket: `" + text + "`.",
        text + "\n", "\t " + text + " ", "\xE2\x80\x9C" + text + "\xE2\x80\x9D", "> " + wrapped}) {
    EXPECT_EQ(bare_ticket(copied), text) << copied;
    ASSERT_TRUE(parse_ticket(copied).ok()) << copied;
    EXPECT_EQ(*parse_ticket(copied), ticket);
  }
  for (const std::string none : {"hello", "", "\"\"", "run.toml", "shoal", "ticket"})
    EXPECT_EQ(bare_ticket(none), none);
}

TEST(TicketTest, RefusesEveryCut) {
  const std::string text = *pack_ticket(sample_ticket());
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(parse_ticket(text.substr(0, size)).ok()) << size;
}

TEST(TicketTest, TellsOtherVersionsFromOtherTexts) {
  EXPECT_EQ(parse_ticket("shoal2:abcd").code(), ErrorCode::kVersion);
  EXPECT_EQ(parse_ticket("hello").code(), ErrorCode::kMalformed);
  EXPECT_EQ(parse_ticket("").code(), ErrorCode::kMalformed);
  EXPECT_EQ(parse_ticket("shoal1:" + std::string(400, 'A')).code(), ErrorCode::kMalformed);
}

TEST(TicketTest, RefusesWhatItCannotName) {
  Ticket ticket = sample_ticket();
  ticket.contacts.clear();
  EXPECT_EQ(pack_ticket(ticket).code(), ErrorCode::kInput);
  ticket = sample_ticket();
  ticket.contacts[0].address = "198.51.100.7";
  EXPECT_EQ(pack_ticket(ticket).code(), ErrorCode::kInput);
  ticket.contacts[0].address = "198.51.100.7:7741+7800";
  EXPECT_EQ(pack_ticket(ticket).code(), ErrorCode::kInput);
  ticket.contacts[0].address = std::string(250, 'a') + ":1";
  EXPECT_EQ(pack_ticket(ticket).code(), ErrorCode::kTooLarge);
}

// Whatever passes the checksum by chance or by intent is still parsed within bounds.
TEST(TicketTest, SurvivesSeededMutationsOfTheContent) {
  Rng rng(11);
  const std::string text = *pack_ticket(sample_ticket());
  for (int i = 0; i < 20000; ++i) {
    std::string mutated = text;
    const std::size_t changes = 1 + rng.below(4);
    for (std::size_t k = 0; k < changes; ++k) mutated[rng.below(mutated.size())] = static_cast<char>(rng.below(256));
    if (mutated == text) continue;
    const auto ticket = parse_ticket(mutated);
    // Only spaces around it may differ.
    if (ticket.ok()) {
      EXPECT_EQ(*ticket, sample_ticket());
    }
  }
}

}  // namespace
}  // namespace shoal
