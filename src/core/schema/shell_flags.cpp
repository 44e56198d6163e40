#include "core/schema/shell_flags.hpp"

#include <utility>

namespace lockstep {
namespace {

/// Options without a member are for this file alone: Schema offers none.
struct Adding : OptionList {
  static constexpr auto kAdd = &Adding::add;
};

}  // namespace

void add_shell_flag(OptionList& list, const std::string& name, std::string help) {
  Option option;
  option.name = name;
  option.help = std::move(help);
  option.kind = Option::Kind::flag;
  option.effect = Effect::display;
  option.get = [](const void*) -> OptionValue { return false; };
  option.set = [](void*, const OptionValue&) {};
  (list.*Adding::kAdd)(std::move(option)).member.clear();
}

}  // namespace lockstep
