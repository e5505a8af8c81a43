#include "lend/lend_unit.h"

#include <algorithm>
#include <array>

#include "common/program/outcome.h"

namespace shoal {
namespace {

// What the next start would only meet again. Others (69 the swarm is not reachable, 74, 75, a signal) may be over.
constexpr std::array kFinal = {kExitUsage,   kExitBadInput, kExitMissing, kExitCannotCreate,
                               kExitVersion, kExitRefused,  kExitConfig};
constexpr std::array kStopped = {130, 143, 129};  // by Ctrl-C, SIGTERM, SIGHUP, in order

template <class Codes>
std::string list_of(const Codes& codes, const char* between) {
  std::string text;
  for (const int code : codes) text += (text.empty() ? "" : between) + std::to_string(code);
  return text;
}

// As systemd.syntax(7) reads a quoted word, without specifiers.
std::string unit_word(const std::string& word) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text = "\"";
  for (const char letter : word) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte < ' ') {  // a line's end would end the setting
      text += std::string("\\x") + kHex[byte / 16] + kHex[byte % 16];
      continue;
    }
    if (letter == '"' || letter == '\\') text += '\\';
    if (letter == '%') text += letter;
    text += letter;
  }
  return text + "\"";
}

std::string unit_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + unit_word(word);
  return text;
}

std::string shell_word(const std::string& word) {
  if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@+") ==
      std::string::npos)
    return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? "'\\''" : std::string(1, letter);
  return text + "'";
}

}  // namespace

bool ends_for_good(int exit_code) {
  const auto has = [&](const auto& codes) { return std::ranges::find(codes, exit_code) != codes.end(); };
  return exit_code == kExitOk || has(kFinal) || has(kStopped);
}

std::string lend_unit(const std::vector<std::string>& words, const std::vector<std::string>& variables) {
  const std::string stopped = list_of(kStopped, " ");
  return "# Written by shoal lend; shoal lend --stop removes it.\n"
         "[Unit]\n"
         "Description=shoal lends this machine to a run\n"
         "StartLimitIntervalSec=0\n"
         "\n"
         "[Service]\n"
         "Type=exec\n" +
         (variables.empty() ? "" : "Environment=" + unit_words(variables) + "\n") +
         // The colon: no variables in it, whose dollars would be doubled in all words but the first.
         "ExecStart=:" + unit_words(words) +
         "\n"
         "Restart=on-failure\n"
         "RestartSec=" +
         std::to_string(kRestartSeconds) +
         "\n"
         "SuccessExitStatus=" +
         stopped +
         "\n"
         "RestartPreventExitStatus=" +
         list_of(kFinal, " ") + " " + stopped +
         "\n"
         "KillMode=mixed\n"
         "TimeoutStopSec=60\n"
         "Nice=10\n"
         "\n"
         "[Install]\n"
         "WantedBy=default.target\n";
}

std::string lend_loop(const std::vector<std::string>& words) {
  std::string command;
  for (const std::string& word : words) command += (command.empty() ? "" : " ") + shell_word(word);
  return "while " + command + "; code=$?; do case $code in 0|" + list_of(kFinal, "|") + "|" + list_of(kStopped, "|") +
         ") break ;; esac; sleep " + std::to_string(kRestartSeconds) + "; done";
}

}  // namespace shoal
