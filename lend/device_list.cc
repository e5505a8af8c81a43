#include "lend/device_list.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace shoal {
namespace {

constexpr std::string_view kAllDevices = "all";

std::vector<std::string> parts_of_list(const std::string& list) {
  std::vector<std::string> parts(1);
  for (const char letter : list) {
    if (letter == ',')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

Result<std::vector<std::string>> all_gpus(const ChooseDevice& choose) {
  std::vector<std::string> found;
  while (true) {
    const std::string next = "cuda:" + std::to_string(found.size());
    const auto there = choose(next);
    if (there.ok()) {
      found.push_back(next);
      continue;
    }
    if (!found.empty()) return found;
    return make_error(ErrorCode::kUnsupported,
                      "--device all lends each GPU, and there is none: " + there.error().message +
                          ". HINT: --device cpu lends the processor; --device cpu,cpu two processes of it");
  }
}

// events.jsonl: events-cuda-0.jsonl
std::string file_with_name(const std::string& file, const std::string& name) {
  std::filesystem::path path(file);
  path.replace_filename(path.stem().string() + "-" + name + path.extension().string());
  return path.string();
}

// 0, which is any, and what is no port stay.
std::string higher_port(const std::string& text, std::size_t index) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return text;
  return std::to_string(port + index);
}

std::string address_with_port(const std::string& address, std::size_t index) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == address.size() - 1 || address.back() == ']') return address;
  if (address.find(':') != colon && address[colon - 1] != ']') return address;  // an IPv6 address without a port
  return address.substr(0, colon + 1) + higher_port(address.substr(colon + 1), 2 * index);  // a port for each lane
}

}  // namespace

bool lists_devices(const std::string& wish) { return wish == kAllDevices || wish.find(',') != std::string::npos; }

Result<std::vector<ListedDevice>> listed_devices(const std::string& wish, const ChooseDevice& choose) {
  std::vector<std::string> wishes;
  if (wish == kAllDevices) {
    SHOAL_ASSIGN(wishes, all_gpus(choose));
  } else {
    wishes = parts_of_list(wish);
  }
  std::vector<ListedDevice> devices;
  std::size_t processors = 0;
  for (const std::string& one : wishes) {
    if (one.empty() || one == kAllDevices)
      return make_error(ErrorCode::kInput,
                        "--device " + wish + " is no list of devices. HINT: all, or as cuda:0,cuda:1 or cpu,cpu");
    SHOAL_ASSIGN(const std::string device, choose(one));
    const bool processor = device == "cpu";
    std::string name = processor ? "cpu-" + std::to_string(processors++) : device;
    std::ranges::replace(name, ':', '-');
    if (std::ranges::any_of(devices, [&](const ListedDevice& other) { return other.name == name; }))
      return make_error(ErrorCode::kInput, "--device " + wish + " lists " + device +
                                               " twice. HINT: one process has a whole GPU; name each once");
    devices.push_back({.wish = device, .name = std::move(name)});
  }
  return devices;
}

std::string home_of(const std::string& home, const ListedDevice& device) { return home + "/" + device.name; }

std::vector<std::string> words_of(const SharedWords& shared, const std::vector<ListedDevice>& devices,
                                  std::size_t index) {
  const ListedDevice& device = devices[index];
  const auto value_for = [&](const std::string& option, const std::string& value) {
    if (option == "--device") return device.wish;
    if (option == "--home") return home_of(shared.home, device);
    if (option == "--events" || option == "--log-file") return file_with_name(value, device.name);
    return option == "--page" ? higher_port(value, index) : address_with_port(value, index);
  };
  static constexpr std::string_view kOwn[] = {"--device",   "--home",   "--events",
                                              "--log-file", "--listen", "--advertise"};
  std::vector<std::string> words;
  bool has_home = false, has_threads = false;
  std::size_t behind_device = 0;  // where an option of join may stand
  for (std::size_t i = 0; i < shared.words.size(); ++i) {
    const std::string& word = shared.words[i];
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string option = word.substr(0, equals);
    has_home |= option == "--home";
    has_threads |= option == "--threads";
    const bool own = std::ranges::find(kOwn, option) != std::end(kOwn);
    if ((own || option == "--page") && equals != std::string::npos) {  // a page's port stands behind "=" alone
      words.push_back(option + "=" + value_for(option, word.substr(equals + 1)));
    } else if (own && i + 1 < shared.words.size()) {
      words.push_back(option);
      words.push_back(value_for(option, shared.words[++i]));
    } else {
      words.push_back(word);
    }
    if (option == "--device") behind_device = words.size();
  }
  if (!has_threads && shared.threads > 0)
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(behind_device),
                 {"--threads", std::to_string(shared.threads)});
  if (!has_home) words.insert(words.begin(), {"--home", home_of(shared.home, device)});
  return words;
}

}  // namespace shoal
