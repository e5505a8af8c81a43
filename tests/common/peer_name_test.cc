// What a peer may be called.
#include "common/peer_name.h"

#include <gtest/gtest.h>

#include <string>

namespace shoal {
namespace {

TEST(PeerNameTest, ItIsShortAndPlain) {
  for (const char* name : {"", "a", "Zoe's 4090", "alice@lab.example", "rack_3-b +1"})
    EXPECT_TRUE(check_peer_name(name).ok()) << name;
  EXPECT_TRUE(check_peer_name(std::string(kPeerNameBytesMax, 'x')).ok());
}

TEST(PeerNameTest, NothingThatATerminalOrAPageWouldObeyIsOne) {
  for (const char* name : {" a", "a ", " ", "a\nb", "\x1b[2J", "<b>", "a\tb", "a\"b", "\xc3\xa9", "\xe2\x80\xae"})
    EXPECT_EQ(check_peer_name(name).error().code, ErrorCode::kInput) << name;
  EXPECT_FALSE(check_peer_name(std::string("a\0b", 3)).ok());
  EXPECT_FALSE(check_peer_name(std::string(kPeerNameBytesMax + 1, 'x')).ok());
}

}  // namespace
}  // namespace shoal
