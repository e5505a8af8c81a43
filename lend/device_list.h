#pragma once
// `join --device all` and `--device A,B`: which devices that means, and the command line of the process of each. Every
// one has a name, which is its home's folder below the home of all: cuda-0, or cpu-0 and cpu-1 where the processor is
// named twice. Pure, but for the question which devices there are.
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"

namespace shoal {

struct ListedDevice {
  std::string wish;  // for --device: "cuda:0", "cpu"
  std::string name;  // "cuda-0"
};

// Whether --device asks for a process of each of several devices.
bool lists_devices(const std::string& wish);
// As choose_device().
using ChooseDevice = std::function<Result<std::string>(const std::string& wish)>;
// REQUIRES: lists_devices(wish). ERRORS: kUnsupported (all: there is no GPU; or `choose`'s), kInput (a GPU is listed
// twice, a gap in the list, or `choose`'s).
Result<std::vector<ListedDevice>> listed_devices(const std::string& wish, const ChooseDevice& choose);

struct SharedWords {
  std::vector<std::string> words;  // of the command line, behind the program; --device is among them
  std::string home;                // of all
  int threads = 0;                 // of each process, where the words name none
};
// The words of the process of `devices[index]`: with its --device, --home and --threads; each --events and --log-file
// with its name before the file's ending; each port of --page, but 0, higher by its
// index, and of --listen and --advertise by twice its index: a process has two.
std::vector<std::string> words_of(const SharedWords& shared, const std::vector<ListedDevice>& devices,
                                  std::size_t index);
// The home of one of them.
std::string home_of(const std::string& home, const ListedDevice& device);

}  // namespace shoal
