#include "cli/manual.h"

#include <algorithm>
#include <sstream>

#include "cli/outcome.h"

namespace shoal {
namespace {

// roff takes a dash for a hyphen, a backslash for an escape, and a line's first . or ' for a command.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

void write_option(const OptionRow& option, std::ostream& page) {
  page << ".TP\n";
  for (std::size_t i = 0; i < option.names.size(); ++i) page << (i > 0 ? ", " : "") << bold(option.names[i]);
  if (!option.value.empty()) page << " " << italic(option.value) << (option.repeats ? " ..." : "");
  page << "\n" << escaped(option.help) << "\n";
  std::string choices;
  for (const std::string& choice : option.choices) choices += (choices.empty() ? "" : ", ") + choice;
  if (!choices.empty()) page << "(one of " << escaped(choices) << ")\n";
  if (!option.bounds.empty()) page << "(" << escaped(option.bounds) << ")\n";
  if (option.required) page << "(must be given)\n";
}

void write_options(const char* title, const std::vector<OptionRow>& options, std::ostream& page) {
  if (options.empty()) return;
  page << ".SH " << title << "\n";
  for (const OptionRow& option : options) write_option(option, page);
}

void write_synopsis(const CommandRow& command, std::ostream& page) {
  page << ".SH SYNOPSIS\n" << bold(command.path) << " [" << italic("OPTIONS") << "]";
  for (const OptionRow& place : command.places)
    page << " " << italic(place.value.empty() ? place.names.front() : place.value) << (place.repeats ? " ..." : "");
  if (!command.commands.empty()) page << " " << italic("COMMAND");
  page << "\n";
}

void write_exit_codes(std::ostream& page) {
  page << ".SH EXIT STATUS\n";
  for (const ExitMeaning& one : kExitMeanings)
    page << ".TP\n" << bold(std::to_string(one.code)) << "\n" << escaped(one.meaning) << "\n";
}

}  // namespace

std::string page_name(const CommandRow& command) {
  std::string name = command.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string manual_page(const CommandRow& program, const CommandRow& command, const std::string& version) {
  std::ostringstream page;
  std::string title = page_name(command);
  std::transform(title.begin(), title.end(), title.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  page << ".TH " << escaped(title) << " 1 \"\" \"" << escaped(version) << "\" \"shoal\"\n"
       << ".SH NAME\n"
       << escaped(page_name(command)) << " \\- " << escaped(command.help) << "\n";
  write_synopsis(command, page);
  if (!command.commands.empty()) {
    page << ".SH COMMANDS\n";
    for (const CommandRow& below : command.commands)
      page << ".TP\n" << bold(below.path) << "\n" << escaped(below.help) << "\n";
  }
  write_options("ARGUMENTS", command.places, page);
  write_options("OPTIONS", command.options, page);
  if (&command != &program) write_options("OPTIONS OF ALL COMMANDS", program.options, page);
  write_exit_codes(page);
  page << ".SH SEE ALSO\n";
  std::string others;
  for (const CommandRow* one : every_command(program))
    if (one != &command && (one == &program || one->path.rfind(command.path + " ", 0) == 0))
      others += (others.empty() ? "" : ", ") + bold(page_name(*one)) + "(1)";
  page << others << "\n";
  return page.str();
}

}  // namespace shoal
