#include "dht/restart_pace.h"

#include <algorithm>

namespace shoal {

Duration RestartPace::after(Duration life) {
  const bool short_life = life < std::max(pause_.last, pause_.first);
  short_lives_ = short_life ? short_lives_ + 1 : 0;
  if (short_life) return pause_.next();
  if (life >= kLongLife * pause_.last) pause_.reset();
  return pause_.ease();
}

}  // namespace shoal
