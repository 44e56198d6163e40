// `lockstep completion bash|zsh|fish|man`: a completion script, or the manual page, made from the commands themselves.
#include "bound_options.hpp"
#include "commands.hpp"
#include "completion/tree.hpp"
#include "session.hpp"

namespace lockstep::cli {
namespace {

struct CompletionOptions {
  std::string shell;
};

void describe(Schema<CompletionOptions>& s) {
  s.of("cli::CompletionOptions");
  s.option("shell", &CompletionOptions::shell, "bash, zsh or fish; man: the manual page",
           {{"bash", "bash"}, {"zsh", "zsh"}, {"fish", "fish"}, {"man", "man"}})
      .flag("SHELL")
      .positional()
      .required();
}

}  // namespace

void add_completion(CommandList& commands, CLI::App& root) {
  Command& command = add_command(commands, root, "completion",
                                 "print a completion script for bash, zsh or fish, or the manual page");
  const CompletionOptions& options = add_options<CompletionOptions>(command);
  add_common(command, "eval \"$(lockstep completion bash)\"");
  command.run = [&options, &root] {
    print_result(options.shell == "bash"   ? bash_script(root)
                 : options.shell == "zsh"  ? zsh_script(root)
                 : options.shell == "fish" ? fish_script(root)
                                           : manual_page(root));
    return 0;
  };
}

}  // namespace lockstep::cli
