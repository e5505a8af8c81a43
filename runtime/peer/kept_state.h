#pragma once
// What a peer keeps of its stage's state from a session that is over to the next (or has from the checkpoint of an
// earlier process): an image of the anchor, and one of a candidate that it had reported and that the authority may have
// committed meanwhile. When one of them is the stage's newest, the next session needs nobody to fetch it from.
// Thread: loop only, but take(): device thread.   Bounds: two images.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "sync/outer_rule.h"
#include "transport/messages.h"

namespace shoal {

class KeptState {
 public:
  struct Image {
    StageId stage;
    Version version;
    Digest digest;
    Bytes bytes;  // state/state_image.h
  };
  using Images = std::vector<Image>;  // the older first

  // A session that ends, as its arena stands.
  struct Source {
    std::shared_ptr<StageExecutor> executor;
    Version version;                        // of the anchor; 0 is not kept: every member can begin anew
    std::shared_ptr<const OuterRule> rule;  // whose roles belong to the anchor
    struct Candidate {
      Version version;
      std::shared_ptr<const OuterRule> rule;  // that prepared it
    };
    std::optional<Candidate> candidate{};

    bool worth_keeping() const { return version > Version(0) || candidate.has_value(); }
  };
  // Makes the images; a candidate takes the anchor's place in the arena, which is of no use afterwards.
  static Images take(const Source& source);

  bool empty() const { return images_.empty(); }
  // Without images what was kept before stays.
  void replace(Images images);
  void clear() { images_.clear(); }

  // What of this stage is held for sure; none: nothing.
  std::optional<HeldState> held(StageId stage) const;
  std::optional<StageId> stage() const;  // none: nothing is held
  // The image that is the stage's newest state by the list, whatever version it was when it was made (a stage that went
  // back has an earlier one's content); null: none is.
  const Image* newest_of(const StageMembers& stage) const;
  // Stage and version of the newest image.
  std::optional<std::pair<StageId, Version>> newest() const;

 private:
  Images images_;
};

}  // namespace shoal
