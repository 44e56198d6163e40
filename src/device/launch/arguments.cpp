// Launches by the names of parameters.
#include <fmt/format.h>

#include <utility>

#include "device/launch/numbers.hpp"

namespace lockstep {

namespace {

/// A parameter, in the order of a launch.
struct Slot {
  bool buffer;
  size_t index;  // of the buffer, or of the first scalar
};

std::vector<Slot> slots_of(const ir::Function& f) {
  std::vector<Slot> slots;
  const size_t buffers = f.argument_buffers();
  size_t b = 0, s = 0;
  while (b < buffers || s < f.scalars.size()) {
    const int position = b < buffers ? f.buffers[b].position : -1;
    const bool buffer = b < buffers && (position <= int(slots.size()) || s == f.scalars.size());
    slots.push_back({buffer, buffer ? b++ : s});
    if (!buffer) s += device::scalars_of(f, s);
  }
  return slots;
}

std::string given_text(const Argument& argument) {
  const bool number =
      !std::holds_alternative<Buffer>(argument) && !std::holds_alternative<StructArgument>(argument);
  return (number ? "the number " : "") + device::text_of(argument);
}

/// Fills the arguments of a kernel's parameters, for one launch.
class Filling {
 public:
  Filling(const Kernel& kernel, const std::source_location& line)
      : kernel_(kernel), f_(kernel.function()), line_(line), slots_(slots_of(f_)) {}

  std::vector<Argument> fill(const std::vector<std::pair<std::string, Argument>>& list, bool all_known) {
    std::vector<bool> given(slots_.size(), false);
    std::vector<Argument> arguments(slots_.size(), Argument(false));
    for (const auto& [name, value] : list) {
      size_t k = 0;
      while (k < slots_.size() && name_of(slots_[k]) != name) ++k;
      if (k == slots_.size()) {
        if (all_known) fail(name, nullptr, "an argument without a parameter", "one of " + names());
        continue;
      }
      if (given[k]) fail(name, &slots_[k], fmt::format("a second argument, {}", given_text(value)), "one");
      if (!fits(slots_[k], value)) fail(name, &slots_[k], given_text(value), wanted_text(slots_[k]));
      given[k] = true;
      arguments[k] = value;
    }
    for (size_t k = 0; k < slots_.size(); ++k)
      if (!given[k]) fail(name_of(slots_[k]), &slots_[k], "no argument", wanted_text(slots_[k]));
    return arguments;
  }

 private:
  const std::string& name_of(const Slot& slot) const {
    return slot.buffer ? f_.buffers[slot.index].name : device::number_name(f_, slot.index);
  }
  std::string names() const {
    std::string known;
    for (const Slot& slot : slots_) known += (known.empty() ? "" : ", ") + name_of(slot);
    return known;
  }
  bool fits(const Slot& slot, const Argument& argument) const {
    const Buffer* buffer = std::get_if<Buffer>(&argument);
    if (!slot.buffer) return !buffer;
    return buffer && *buffer && buffer->storage() == f_.buffers[slot.index].storage &&
           buffer->shape().rank() == f_.buffers[slot.index].rank;
  }
  std::string wanted_text(const Slot& slot) const {
    if (!slot.buffer) return device::wanted_number(f_, slot.index);
    const ir::BufferParam& b = f_.buffers[slot.index];
    return fmt::format("a buffer of {} of rank {}", name(b.storage), b.rank);
  }
  [[noreturn]] void fail(const std::string& parameter, const Slot* slot, const std::string& what,
                         const std::string& expected) const {
    const ir::Place place = !slot          ? 0
                            : slot->buffer ? f_.buffers[slot->index].place
                                           : f_.scalars[slot->index].place;
    const std::string declared = ir::place_text(f_, place);
    throw InputError(what,
                     fmt::format("kernel {}, parameter {}{}{}", kernel_.name(), parameter,
                                 declared.empty() ? "" : ", declared near " + declared,
                                 device::near_text(line_, ", launched near ")),
                     expected);
  }

  const Kernel& kernel_;
  const ir::Function& f_;
  const std::source_location& line_;
  std::vector<Slot> slots_;
};

}  // namespace

std::vector<Argument> Arguments::bind(const Kernel& kernel, const std::source_location& where) const {
  return Filling(kernel, where).fill(list_, true);
}

std::vector<Argument> Arguments::bind_known(const Kernel& kernel, const std::source_location& where) const {
  return Filling(kernel, where).fill(list_, false);
}

}  // namespace lockstep
