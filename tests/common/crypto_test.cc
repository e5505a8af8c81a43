#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/crypto/hash.h"
#include "common/crypto/path_tag.h"
#include "common/crypto/sign.h"
#include "common/crypto/text_codes.h"
#include "common/rng.h"
#include "tests/common/scratch_folder.h"

namespace shoal {
namespace {

ByteView view_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

std::array<std::uint8_t, 32> counting_key() {
  std::array<std::uint8_t, 32> key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  return key;
}

// Values of `b2sum -l 256` of GNU coreutils.
TEST(HashTest, MatchesAnotherImplementation) {
  EXPECT_EQ(hex_of(blake2b_256({})), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(hex_of(blake2b_256(view_of("abc"))), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

// Values of `hashlib.blake2b(..., key=..., digest_size=32)` of Python.
TEST(HashTest, WithAKeyItMatchesAnotherImplementation) {
  const Digest key{counting_key()};
  EXPECT_EQ(hex_of(keyed_blake2b_256(key, view_of("abc"))),
            "d63a32d3e44738d7907f964316c241adaba0abfeabc32349677578a15a203f7f");
  const Digest of_session = path_key_of(key, Session{1, 2});
  EXPECT_EQ(path_tag(of_session, {0x0a0b, 300}, 5), 0xa683ff35ae053b64ull);
}

TEST(PathTagTest, IsOfOneSessionOneMicrobatchAndOneEntry) {
  const Digest secret = path_secret_of(KeyPair::from_seed(counting_key()));
  EXPECT_EQ(secret, path_secret_of(KeyPair::from_seed(counting_key()))) << "a resumed process finds it again";
  EXPECT_NE(secret, path_secret_of(KeyPair::generate()));
  const Digest key = path_key_of(secret, Session{1, 2});
  EXPECT_NE(key, path_key_of(secret, Session{1, 3}));
  EXPECT_NE(key, path_key_of(secret, Session{2, 1}));
  const std::uint64_t tag = path_tag(key, {7, 8}, 9);
  EXPECT_NE(tag, path_tag(key, {7, 9}, 9));
  EXPECT_NE(tag, path_tag(key, {8, 8}, 9));
  EXPECT_NE(tag, path_tag(key, {7, 8}, 10));
  EXPECT_NE(tag, path_tag(path_key_of(secret, Session{1, 3}), {7, 8}, 9));
}

TEST(HashTest, PiecesGiveTheHashOfTheWhole) {
  Rng rng(4);
  std::vector<std::uint8_t> bytes(1000);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  const Digest whole = blake2b_256(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 37) {
    Hasher hasher;
    hasher.update(ByteView(bytes).first(cut));
    hasher.update(ByteView(bytes).subspan(cut));
    EXPECT_EQ(hasher.finish(), whole);
  }
}

TEST(HashTest, TheTreeSeesEveryByteTheLengthAndTheOrder) {
  std::vector<std::uint8_t> bytes(250, 1);
  const Digest root = tree_digest(bytes, 100);
  EXPECT_EQ(chunk_digests(bytes, 100).size(), 3u);
  for (const std::size_t at : {0ul, 99ul, 100ul, 249ul}) {
    auto changed = bytes;
    changed[at] ^= 1;
    EXPECT_NE(tree_digest(changed, 100), root) << at;
  }
  auto longer = bytes;
  longer.push_back(1);
  EXPECT_NE(tree_digest(longer, 100), root);
  EXPECT_NE(tree_digest(bytes, 125), root);
  auto leaves = chunk_digests(bytes, 100);
  EXPECT_EQ(tree_root(250, leaves, 100), root);
  std::swap(leaves[0], leaves[2]);
  EXPECT_NE(tree_root(250, leaves, 100), root);
  // One chunk is not its own root, and neither is a plain hash.
  EXPECT_NE(tree_digest(view_of("abc")), chunk_digest(view_of("abc")));
  EXPECT_NE(chunk_digest(view_of("abc")), blake2b_256(view_of("abc")));
  EXPECT_TRUE(chunk_digests({}).empty());
}

// RFC 8032, 7.1, test 1.
TEST(SignTest, MatchesThePublishedVector) {
  const auto seed = parse_hex32("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").value();
  const KeyPair pair = KeyPair::from_seed(seed);
  EXPECT_EQ(hex_of(pair.id()), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  const Signature signature = pair.sign({});
  EXPECT_EQ(hex_of(signature.data(), 32), "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155");
  EXPECT_TRUE(verify(pair.id(), {}, signature));
  EXPECT_EQ(pair.seed(), seed);
}

// kB that this process keeps from being swapped out.
long locked_memory() {
  const std::string status = ScratchFolder::read("/proc/self/status");
  const std::size_t at = status.find("VmLck:");
  return at == std::string::npos ? -1 : std::stol(status.substr(at + 6));
}

TEST(SignTest, ASecretIsInAPageThatIsNotSwappedOutForAsLongAsACopyLives) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers lock nothing";
#endif
  const long before = locked_memory();
  {
    const KeyPair pair = KeyPair::generate();
    const long with = locked_memory();
    EXPECT_GT(with, before);
    const KeyPair copy = pair;
    EXPECT_EQ(locked_memory(), with) << "copies share it";
    EXPECT_EQ(copy.seed(), pair.seed());
  }
  EXPECT_EQ(locked_memory(), before);
}

TEST(SignTest, AKeyThatWasMovedFromStillSigns) {
  KeyPair pair = KeyPair::generate();
  const KeyPair moved = std::move(pair);
  EXPECT_EQ(moved.sign({}), pair.sign({}));
}

TEST(SignTest, AnyChangedBitIsRefused) {
  const KeyPair pair = KeyPair::generate();
  std::vector<std::uint8_t> message = {1, 2, 3, 4, 5};
  const Signature signature = pair.sign(message);
  ASSERT_TRUE(verify(pair.id(), message, signature));
  for (std::size_t bit = 0; bit < 512; ++bit) {
    Signature changed = signature;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_FALSE(verify(pair.id(), message, changed)) << bit;
  }
  for (auto& byte : message) {
    byte ^= 1;
    EXPECT_FALSE(verify(pair.id(), message, signature));
    byte ^= 1;
  }
  EXPECT_FALSE(verify(KeyPair::generate().id(), message, signature));
  EXPECT_FALSE(verify(PeerId{}, message, signature));
}

TEST(SignTest, CurveKeysOfBothSidesFit) {
  const KeyPair pair = KeyPair::generate();
  EXPECT_EQ(curve_public_of(pair.id()).value(), pair.curve_public());
  EXPECT_NE(pair.curve_public(), pair.curve_secret());
  EXPECT_NE(pair.curve_public(), KeyPair::generate().curve_public());
  // Clamped as X25519 wants it (RFC 7748, 5).
  EXPECT_EQ(pair.curve_secret()[0] & 7, 0);
  EXPECT_EQ(pair.curve_secret()[31] & 192, 64);
}

TEST(SignTest, AKeyThatIsNoPointOfTheGroupHasNoCurveKey) {
  PeerId peer;
  EXPECT_EQ(curve_public_of(peer).code(), ErrorCode::kMalformed);
  peer.bytes.fill(0xff);
  EXPECT_EQ(curve_public_of(peer).code(), ErrorCode::kMalformed);
}

// RFC 4648, 10.
TEST(HasherTest, AWordIsItsEightBytesLittleEndian) {
  Hasher by_word, by_bytes;
  by_word.update_u64(0x0102030405060708ull);
  by_bytes.update(std::array<std::uint8_t, 8>{8, 7, 6, 5, 4, 3, 2, 1});
  EXPECT_EQ(by_word.finish(), by_bytes.finish());
}

TEST(TextCodesTest, Base64urlMatchesPublishedVectors) {
  EXPECT_EQ(base64url_of(view_of("")), "");
  EXPECT_EQ(base64url_of(view_of("f")), "Zg");
  EXPECT_EQ(base64url_of(view_of("fo")), "Zm8");
  EXPECT_EQ(base64url_of(view_of("foobar")), "Zm9vYmFy");
  EXPECT_EQ(base64url_of(std::vector<std::uint8_t>{0xfb, 0xff}), "-_8");
}

TEST(TextCodesTest, Base64urlRoundTripsAtEveryLength) {
  Rng rng(6);
  std::vector<std::uint8_t> bytes;
  for (int size = 0; size < 70; ++size) {
    EXPECT_EQ(parse_base64url(base64url_of(bytes)).value(), bytes);
    EXPECT_EQ(parse_checked_base64url(checked_base64url_of(bytes)).value(), bytes);
    bytes.push_back(static_cast<std::uint8_t>(rng.next()));
  }
}

TEST(TextCodesTest, StrangeBase64urlIsMalformed) {
  for (const char* text : {"A", "AAAAA", "Zg==", "Zm9+", "Zm 8", "Zh", "Zm9vYm\n"}) {
    EXPECT_EQ(parse_base64url(text).code(), ErrorCode::kMalformed) << text;
  }
}

TEST(TextCodesTest, EverySingleTypoIsCalledATypo) {
  const auto key = counting_key();
  const std::string text = checked_base64url_of(key);
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'A', 'z', '5', '-', '!'}) {
      if (text[i] == c) continue;
      std::string typo = text;
      typo[i] = c;
      EXPECT_FALSE(parse_checked_base64url(typo).ok()) << i << c;
    }
    EXPECT_FALSE(parse_checked_base64url(text.substr(0, i)).ok());
  }
  std::string changed = text;
  changed[0] = changed[0] == 'B' ? 'C' : 'B';
  EXPECT_EQ(parse_checked_base64url(changed).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace shoal
