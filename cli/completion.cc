#include "cli/completion.h"

#include <sstream>

#include "common/check.h"

namespace shoal {
namespace {

using Rows = std::vector<const CommandRow*>;

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// In single quotes, as all three shells read them. fish reads \\ and \' there, the others nothing.
std::string quoted(const std::string& text, bool fish = false) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += fish ? "\\'" : "'\\''";
    } else {
      if (c == '\\' && fish) out += c;
      out += c == '\n' ? ' ' : c;
    }
  }
  return out + "'";
}

std::vector<std::string> names_below(const CommandRow& command) {
  std::vector<std::string> names;
  for (const CommandRow& below : command.commands) names.push_back(below.path.substr(below.path.rfind(' ') + 1));
  return names;
}

// A command's own options and those of the program, which hold everywhere.
std::vector<const OptionRow*> options_at(const CommandRow& program, const CommandRow& command) {
  std::vector<const OptionRow*> all;
  for (const OptionRow& option : command.options) all.push_back(&option);
  if (&command == &program) return all;
  for (const OptionRow& option : program.options)
    if (option.names.back() != "--help" && option.names.back() != "--version") all.push_back(&option);
  return all;
}

// "file", "folder", the choices, or nothing: what a script's own words offer for a value.
std::string offer_of(const OptionRow& option) {
  if (!option.choices.empty()) return joined(option.choices, " ");
  switch (value_kind(option)) {
    case ValueKind::kFile:
      return "@files";
    case ValueKind::kFolder:
      return "@folders";
    case ValueKind::kNothing:
    case ValueKind::kAnything:
      break;
  }
  return "@nothing";
}

std::string offer_at_place(const CommandRow& command) {
  for (const OptionRow& place : command.places)
    if (offer_of(place) != "@nothing") return offer_of(place);
  return "@nothing";
}

// ---- bash and zsh: tables as functions of the words before; a few lines of the shell's own offer what they say.
void write_tables(const CommandRow& program, const Rows& commands, std::ostream& out) {
  out << "# What a word makes of the command so far.\n_shoal_is_command() {\n  case \"$1\" in\n    ";
  for (std::size_t i = 1; i < commands.size(); ++i) out << (i > 1 ? "|" : "") << quoted(commands[i]->path);
  out << ") return 0 ;;\n  esac\n  return 1\n}\n"
         "# COMMAND: its commands and options.\n_shoal_words() {\n  case \"$1\" in\n";
  for (const CommandRow* command : commands) {
    std::vector<std::string> words = names_below(*command);
    for (const OptionRow* option : options_at(program, *command))
      words.insert(words.end(), option->names.begin(), option->names.end());
    out << "    " << quoted(command->path) << ") echo " << quoted(joined(words, " ")) << " ;;\n";
  }
  out << "  esac\n}\n"
         "# COMMAND OPTION: what stands behind it; nothing where it takes no value.\n_shoal_value() {\n  case \"$1 "
         "$2\" in\n";
  for (const CommandRow* command : commands) {
    for (const OptionRow* option : options_at(program, *command)) {
      if (option->value.empty()) continue;
      std::vector<std::string> cases;
      for (const std::string& name : option->names) cases.push_back(quoted(command->path + " " + name));
      out << "    " << joined(cases, "|") << ") echo " << quoted(offer_of(*option)) << " ;;\n";
    }
  }
  out << "  esac\n}\n# COMMAND: what stands at its places.\n_shoal_place() {\n  case \"$1\" in\n";
  for (const CommandRow* command : commands) {
    if (!command->places.empty())
      out << "    " << quoted(command->path) << ") echo " << quoted(offer_at_place(*command)) << " ;;\n";
  }
  out << R"sh(  esac
}
# COMMAND WORD-BEFORE CURRENT: what is offered there.
_shoal_choice() {
  local value="$(_shoal_value "$1" "$2")" place="$(_shoal_place "$1")"
  if [[ -n "$value" ]]; then
    echo "$value"
  elif [[ -n "$place" && "$3" != -* ]]; then
    echo "$place"
  else
    _shoal_words "$1"
  fi
}
)sh";
}

std::string bash_script(const CommandRow& program) {
  std::ostringstream out;
  out << "# Completes the words of `shoal` in bash: source <(shoal completion bash)\n";
  write_tables(program, every_command(program), out);
  out << R"sh(_shoal_offer() {
  case "$1" in
    @files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    @folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    @nothing) COMPREPLY=() ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2") ;;
  esac
}
_shoal() {
  local current="${COMP_WORDS[COMP_CWORD]}" command=shoal i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if _shoal_is_command "$command ${COMP_WORDS[i]}"; then command="$command ${COMP_WORDS[i]}"; fi
  done
  _shoal_offer "$(_shoal_choice "$command" "${COMP_WORDS[COMP_CWORD - 1]}" "$current")" "$current"
}
complete -F _shoal shoal
)sh";
  return out.str();
}

std::string zsh_script(const CommandRow& program) {
  std::ostringstream out;
  out << "#compdef shoal\n# Completes the words of `shoal` in zsh: a file _shoal in a folder of $fpath.\n";
  write_tables(program, every_command(program), out);
  out << R"sh(_shoal_offer() {
  case "$1" in
    @files) _files ;;
    @folders) _files -/ ;;
    @nothing) ;;
    *) compadd -- ${=1} ;;
  esac
}
_shoal() {
  local command=shoal i
  for ((i = 2; i < CURRENT; i++)); do
    if _shoal_is_command "$command ${words[i]}"; then command="$command ${words[i]}"; fi
  done
  _shoal_offer "$(_shoal_choice "$command" "${words[CURRENT - 1]}" "${words[CURRENT]}")"
}
if [ "${funcstack[1]}" = _shoal ]; then _shoal "$@"; else compdef _shoal shoal; fi
)sh";
  return out.str();
}

// ---- fish: a line for each word, with what help says of it.
void write_fish_option(const std::string& at, const OptionRow& option, std::ostream& out) {
  out << "complete -c shoal -n " << quoted(at, true);
  for (const std::string& name : option.names)
    out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
  const std::string offer = offer_of(option);
  if (option.value.empty()) {
  } else if (offer == "@files") {
    out << " -r -F";
  } else if (offer == "@folders") {
    out << " -x -a '(__fish_complete_directories)'";
  } else {
    out << " -x";
    if (offer != "@nothing") out << " -a " << quoted(offer, true);
  }
  out << " -d " << quoted(option.help, true) << "\n";
}

std::string fish_script(const CommandRow& program) {
  const Rows commands = every_command(program);
  std::ostringstream out;
  out << "# Completes the words of `shoal` in fish: shoal completion fish | source\n"
         "function __shoal_at\n  set -l command shoal\n  for word in (commandline -opc)[2..-1]\n    switch \"$command "
         "$word\"\n      case";
  for (std::size_t i = 1; i < commands.size(); ++i) out << " " << quoted(commands[i]->path, true);
  out << "\n        set command \"$command $word\"\n    end\n  end\n  test \"$command\" = \"$argv\"\nend\n"
         "complete -c shoal -f\n";
  for (const CommandRow* command : commands) {
    const std::string at = "__shoal_at " + command->path;
    for (const CommandRow& below : command->commands) {
      out << "complete -c shoal -n " << quoted(at, true) << " -a "
          << quoted(below.path.substr(below.path.rfind(' ') + 1), true) << " -d " << quoted(below.help, true) << "\n";
    }
    for (const OptionRow* option : options_at(program, *command)) write_fish_option(at, *option, out);
    const std::string offer = offer_at_place(*command);
    if (offer == "@nothing") continue;
    out << "complete -c shoal -n " << quoted(at, true);
    if (offer == "@files") {
      out << " -F";
    } else if (offer == "@folders") {
      out << " -a '(__fish_complete_directories)'";
    } else {
      out << " -a " << quoted(offer, true);
    }
    out << "\n";
  }
  return out.str();
}

}  // namespace

std::string completion_script(const CommandRow& program, const std::string& shell) {
  if (shell == "bash") return bash_script(program);
  if (shell == "zsh") return zsh_script(program);
  SHOAL_CHECK_EQ(shell, std::string("fish"));
  return fish_script(program);
}

}  // namespace shoal
