#include "dht/restart_pace.h"

#include <algorithm>

namespace shoal {

Duration RestartPace::after(Duration life) {
  const bool short_life = life < std::max(pause_, least_);
  short_lives_ = short_life ? short_lives_ + 1 : 0;
  if (short_life) {
    pause_ = std::clamp<Duration>(2 * pause_, least_, most_);
  } else {
    pause_ = life >= kLongLife * pause_ ? least_ : std::max<Duration>(pause_ / 2, least_);
  }
  return pause_;
}

}  // namespace shoal
