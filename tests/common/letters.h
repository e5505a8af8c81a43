#pragma once
// Texts to train on.
#include <string>

#include "common/ids.h"

namespace shoal {

// `size` letters of twenty from `first` on, each drawn for `run` places.
inline std::string letters(std::size_t size, std::size_t run, char first = 'a') {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(first + mix64(i / run) % 20);
  return text;
}

}  // namespace shoal
