// Functions that a kernel calls: their text before it, and the text of a call.
#include <fmt/format.h>

#include "compile/clike/printer.hpp"

namespace lockstep::clike {

std::string Printer::called_functions() {
  std::string out, taken;
  for (size_t k = 0; k < function_.functions.size(); ++k) {
    const ir::Function& f = function_.functions[k];
    const std::unique_ptr<Printer> printer = printer_of(f);
    const std::string name = fmt::format("{}{}", prefix, k);
    printer->prefix = name + "_";
    out += printer->called_functions();
    taken.clear();
    for (size_t p = 0; p < f.scalars.size(); ++p)
      taken += (p ? ", " : "") + parameter(f.scalars[p].type, fmt::format("p{}", p));
    const ir::Instruction& given = result_of(f);
    out += printer->function_text(name, taken, type_name(f[given.args[0]].type, given.arg_count()));
  }
  return out;
}

Expression Printer::called(uint32_t number, std::span<const Expression> values) const {
  Expression out{fmt::format("{}{}(", prefix, number), Precedence::atom, max_depth(values) + 1};
  for (size_t k = 0; k < values.size(); ++k) out.text += (k ? ", " : "") + values[k].text;
  out.text += ")";
  return out;
}

}  // namespace lockstep::clike
