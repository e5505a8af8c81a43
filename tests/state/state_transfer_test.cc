#include "tests/state/transfer_rig.h"

namespace shoal {
namespace {

TEST_F(TransferTest, HashesBesideTheLoopAlsoWhenTheFirstChunkComesLast) {
  const Bytes image = big_image(16, 7, 1);
  add(1, image).loses_first = true;
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, image));
  EXPECT_LE(loop.most_bulk_bytes(), kHashChunkBytes) << "a chunk is copied, and none is hashed";
  EXPECT_EQ(asides, 3) << "33 chunks were here at once: no job is long";
}

TEST_F(TransferTest, ChunksThatComeWhileOthersAreHashedAreHashedNext) {
  aside_time = 300ms;
  const Bytes image = big_image(4, 7, 1);
  add(1, image);
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, image));
  EXPECT_EQ(asides, 2) << "the first chunk, and the rest that came meanwhile";
}

TEST_F(TransferTest, AnotherTargetEndsTheHashingOfTheFormer) {
  const Bytes old_image = big_image(8, 7, 1), new_image = big_image(8, 8, 2);
  Donor& old_donor = add(1, old_image);
  old_donor.loses_first = true;
  fetcher.fetch(Version(7), digest_of_image(old_image), all());
  ASSERT_TRUE(loop.run_until_true([&] { return progress == old_image.size(); }, loop.now() + 60s));
  EXPECT_TRUE(fetched.empty()) << "its first chunk came last: most of it is not hashed yet";
  add(2, new_image);
  fetcher.fetch(Version(8), digest_of_image(new_image), {donors[1]->self});
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, new_image));
}

TEST(ImageHasherTest, SaysTheSameAsTheWholeImagesHashes) {
  const Bytes image = big_image(1, 7, 3);
  ImageHasher hasher(image);
  std::size_t chunks = 0;
  for (; !hasher.done(); ++chunks) hasher.next();
  EXPECT_EQ(chunks, 3u);
  const auto hashes = hasher.finish();
  ASSERT_TRUE(hashes.ok());
  EXPECT_EQ(hashes->digest, digest_of_image(image));
  EXPECT_EQ(hashes->root, tree_digest(image));
  EXPECT_EQ(hashes->header.version, Version(7));
  const Bytes no_image = Bytes::copy_of(ByteView(std::vector<std::uint8_t>(20, 1)));
  ImageHasher other(no_image);
  while (!other.done()) other.next();
  EXPECT_EQ(other.finish().code(), ErrorCode::kMalformed);
}

TEST_F(TransferTest, FetchesInChunksFromSeveralDonorsAtOnce) {
  const Bytes image = big_image(3, 7, 1);
  add(1, image);
  add(2, image);
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, image));
  EXPECT_EQ(progress, image.size());
  EXPECT_GT(donors[0]->chunks_asked, 0);
  EXPECT_GT(donors[1]->chunks_asked, 0);
  EXPECT_EQ(donors[0]->chunks_asked + donors[1]->chunks_asked, 7);
  EXPECT_FALSE(fetcher.active());
}

TEST_F(TransferTest, GoesOnWithAnotherDonorWhenOneDiesInTheMiddle) {
  const Bytes image = big_image(4, 7, 2);
  add(1, image);
  add(2, image);
  when_progress = [&] {
    if (progress > 3u << 20) donors[0]->up = false;
  };
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, image));
  EXPECT_LE(donors[0]->chunks_asked + donors[1]->chunks_asked, 9 + 4) << "what was fetched is kept";
}

// Of two members that nobody can dial each needs another one.
TEST_F(TransferTest, ADonorWithoutAWayIsNeitherAskedNorWaitedFor) {
  const Bytes image = big_image(1, 7, 2);
  Donor& donor = add(1, image);
  add(2, image);
  unreached = {donors[1]->self};
  bool went = false;
  when_chunk = [&](const Chunk&) {
    if (!std::exchange(went, true)) fetcher.on_donor_down(donor.self);  // before it gave any
  };
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched(4s)) << "nobody else can be asked: it is asked again at once";
  EXPECT_EQ(donors[1]->chunks_asked, 0);
}

TEST_F(TransferTest, ADonorThatARelayLeadsToIsAskedWhereNobodyElseHasTheState) {
  const Bytes image = big_image(1, 7, 2);
  add(1, image);
  add(2, image);
  relayed = {donors[1]->self};
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched(4s));
  EXPECT_EQ(donors[1]->chunks_asked, 0);
  fetched = Bytes();
  donors[0]->up = false;
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_GT(donors[1]->chunks_asked, 0);
}

TEST_F(TransferTest, WhereNoDonorHasAWayThatIsSaidUntilOneHas) {
  const Bytes image = big_image(1, 7, 2);
  unreached = {add(1, image).self};
  fetcher.fetch(Version(7), digest_of_image(image), all());
  loop.run_for(6s);
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_NE(waiting[0].find("no way to them"), std::string::npos);
  unreached.clear();
  EXPECT_TRUE(run_until_fetched(4s));
}

// Else the only one that can be asked would be left out for ever.
TEST_F(TransferTest, WhoGaveAFalseImageIsAskedAgainWhereTheOthersHaveNoWay) {
  const Bytes image = big_image(1, 7, 5);
  add(1, image).lies = true;
  add(2, image);
  unreached = {donors[1]->self};
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(loop.run_until_true([&] { return !waiting.empty(); }, loop.now() + 10s));
  const int asked = donors[0]->chunks_asked;
  loop.run_for(3s);
  EXPECT_GT(donors[0]->chunks_asked, asked);
}

TEST_F(TransferTest, IgnoresOffersOfAnythingElseThanTheCommittedDigest) {
  const Bytes image = big_image(1, 7, 3), other = big_image(1, 7, 4), older = big_image(1, 6, 3);
  add(1, other);
  add(2, older);
  fetcher.fetch(Version(7), digest_of_image(image), all());
  EXPECT_FALSE(run_until_fetched(20s));
  EXPECT_EQ(donors[0]->chunks_asked + donors[1]->chunks_asked, 0);
  ASSERT_FALSE(waiting.empty());
  EXPECT_NE(waiting[0].find("version 7"), std::string::npos);
  donors[1]->image = image;
  ASSERT_TRUE(run_until_fetched()) << "a member that catches up becomes a donor";
}

// It said so while the image was being made and while chunks came.
TEST_F(TransferTest, NobodyIsMissedWhileSomebodyMakesTheImage) {
  const Bytes image = big_image(1, 7, 3);
  Donor& donor = add(1, image);
  donor.making_time = 30s;
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched(60s));
  EXPECT_GT(making, 0);
  EXPECT_TRUE(waiting.empty()) << waiting[0];
}

TEST_F(TransferTest, ADonorWhoseBytesDoNotFitTheRootIsLeftOut) {
  const Bytes image = big_image(1, 7, 5);
  add(1, image).lies = true;
  fetcher.fetch(Version(7), digest_of_image(image), all());
  EXPECT_FALSE(run_until_fetched(5s));
  EXPECT_FALSE(waiting.empty());
  add(2, image);
  donors[0]->up = false;
  fetcher.fetch(Version(7), digest_of_image(image), {donors[1]->self});
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, image));
}

// Its chunks hang under the root that it offered: only the digest of the whole tells.
TEST_F(TransferTest, AnImageOfAnotherDigestIsNotTakenThoughItFitsItsRoot) {
  const Bytes image = big_image(1, 7, 5), other = big_image(1, 7, 6);
  add(1, other).claims = digest_of_image(image);
  fetcher.fetch(Version(7), digest_of_image(image), all());
  EXPECT_FALSE(run_until_fetched(5s));
  EXPECT_GT(donors[0]->chunks_asked, 0);
  add(2, image);
  fetcher.fetch(Version(7), digest_of_image(image), all());
  EXPECT_TRUE(run_until_fetched() && equal(fetched, image));
}

TEST_F(TransferTest, ANewerTargetReplacesTheOlder) {
  const Bytes old_image = big_image(3, 7, 6), new_image = big_image(3, 8, 7);
  add(1, old_image);
  when_progress = [&] {
    if (progress < 2u << 20 || donors[0]->version() == Version(8)) return;
    donors[0]->image = new_image;
    fetcher.fetch(Version(8), digest_of_image(new_image), all());
  };
  fetcher.fetch(Version(7), digest_of_image(old_image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, new_image));
  fetcher.fetch(Version(7), digest_of_image(old_image), {});
  EXPECT_EQ(donors[0]->images_made, 2);
}

// Rounds are committed faster than a slow line fetches.
TEST_F(TransferTest, AnImageThatIsFetchedStaysThoughItsDonorHasANewerOne) {
  const Bytes old_image = big_image(3, 7, 6), new_image = big_image(3, 8, 7);
  Donor& donor = add(1, old_image);
  when_progress = [&] {
    if (progress < 2u << 20 || donor.version() == Version(8)) return;
    donor.image = new_image;
    donor.donor.moved_on();
    donor.donor.on_query(peer_of(98), {StageId(0), Version(8)});  // another one has it made
  };
  fetcher.fetch(Version(7), digest_of_image(old_image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, old_image));
  EXPECT_EQ(donor.images_made, 2);
  fetched = {};
  fetcher.fetch(Version(8), digest_of_image(new_image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, new_image));
  EXPECT_EQ(donor.images_made, 2) << "the newest one was kept beside it";
}

TEST_F(TransferTest, AnOlderImageGoesWhenNobodyFetchesItAndAThirdIsNotKept) {
  const Bytes first = big_image(3, 7, 6), second = big_image(3, 8, 7), third = big_image(3, 9, 8);
  Donor& donor = add(1, first);
  std::vector<bool> has;
  const auto ask = [&](std::uint64_t version) {
    donor.donor.on_query(peer_of(90 + version), {StageId(0), Version(version)});
    loop.run_for(10ms);
    donor.donor.on_chunk_query(peer_of(90 + version), {StageId(0), Version(version), 0});
  };
  when_chunk = [&](const Chunk& chunk) { has.push_back(chunk.has); };
  ask(7);
  donor.image = second;
  donor.donor.moved_on();
  ask(8);
  donor.image = third;
  donor.donor.moved_on();
  ask(7);
  ask(8);
  loop.run_for(DonorOptions{}.idle + 1s);
  ask(7);
  loop.run_for(1s);
  EXPECT_EQ(has, (std::vector<bool>{true, true, true, false, false}));
}

TEST_F(TransferTest, ADonorSendsNoFasterThanItsRate) {
  const Bytes image = big_image(2, 7, 8);
  add(1, image, DonorOptions{.bytes_per_second = 1 << 20});
  const TimePoint start = loop.now();
  fetcher.fetch(Version(7), digest_of_image(image), all());
  ASSERT_TRUE(run_until_fetched());
  EXPECT_GE(loop.now() - start, 4s);
}

TEST_F(TransferTest, WhoAsksAgainWhileTheImageIsMadeIsToldSo) {
  const Bytes image = big_image(1, 7, 8);
  add(1, image).making_time = 5s;
  fetcher.fetch(Version(7), digest_of_image(image), all());
  loop.run_for(4500ms);
  EXPECT_EQ(making, 4) << "each second once, but not at first";
  ASSERT_TRUE(run_until_fetched());
  EXPECT_EQ(donors[0]->images_made, 1);
}

TEST_F(TransferTest, AnOfferOfASizeThatTheStageCannotHaveIsIgnored) {
  const Bytes image = big_image(1, 7, 1);
  const Donor& donor = add(1, image);
  StateFetcher exact(FetcherOptions{.sizes = image_sizes(parse_state_header(image)->floats)}, *this, loop, StageId(0));
  exact.fetch(Version(7), digest_of_image(image), all());
  StateOffer offer;
  offer.version = Version(7);
  offer.has = true;
  offer.digest = digest_of_image(image);
  offer.bytes = kStateImageBytesMax;
  offer.chunks = static_cast<std::uint32_t>(offer.bytes / kHashChunkBytes);
  exact.on_offer(donor.self, offer);
  loop.run_for(100ms);
  EXPECT_EQ(donor.chunks_asked, 0) << "nothing is reserved and nothing is asked for";
  offer.bytes = image.size();
  offer.chunks = static_cast<std::uint32_t>((offer.bytes + kHashChunkBytes - 1) / kHashChunkBytes);
  exact.on_offer(donor.self, offer);
  loop.run_for(100ms);
  EXPECT_GT(donor.chunks_asked, 0);
}

// It offers at every turn an image that nobody else has, and sends nothing of it.
TEST_F(TransferTest, TheRootOfWhoSendsNothingIsForgotten) {
  const Bytes image = big_image(2, 7, 1);
  add(1, image);
  const PeerId liar = peer_of(2);
  StateOffer offer;
  offer.version = Version(7);
  offer.has = true;
  offer.digest = digest_of_image(image);
  offer.root.bytes[0] = 1;
  offer.bytes = image.size();
  offer.chunks = static_cast<std::uint32_t>((offer.bytes + kHashChunkBytes - 1) / kHashChunkBytes);
  fetcher.fetch(Version(7), digest_of_image(image), {liar, peer_of(1)});
  std::function<void()> again = [&] {
    fetcher.on_offer(liar, offer);
    loop.after(100ms, again);
  };
  again();
  ASSERT_TRUE(run_until_fetched());
  EXPECT_TRUE(equal(fetched, image));
}

TEST_F(TransferTest, NobodyToAskIsSaid) {
  fetcher.fetch(Version(7), Digest{}, {});
  loop.run_for(6s);
  ASSERT_FALSE(waiting.empty());
  EXPECT_NE(waiting[0].find("nobody"), std::string::npos);
  fetcher.cancel();
  EXPECT_FALSE(fetcher.target());
}

}  // namespace
}  // namespace shoal
