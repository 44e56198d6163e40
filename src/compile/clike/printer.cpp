#include "compile/clike/printer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep::clike {

using ir::Id;
using ir::Instruction;
using ir::Op;

namespace {

// Longer or deeper expressions are cut by a name.
constexpr size_t kMaxText = 72;
constexpr int kMaxDepth = 6;

/// Whether it matters by itself, not only by its value.
bool has_effect(Op op) {
  switch (op) {
    case Op::load:
    case Op::shared_load:
    case Op::local_load:
    case Op::variable:
    case Op::get:
    case Op::loop_index:
    case Op::call: return false;
    default: return !ir::is_pure(op);
  }
}

/// Uses of each value by instructions that matter.
std::vector<int> count_uses(const ir::Function& f) {
  std::vector<int> uses(f.instructions.size(), 0);
  std::vector<Id> work;
  std::vector<bool> seen(f.instructions.size(), false);
  for (const ir::Block& block : f.blocks)
    for (Id id : block)
      if (has_effect(f[id].op)) {
        work.push_back(id);
        seen[id] = true;
      }
  while (!work.empty()) {
    const Id id = work.back();
    work.pop_back();
    for (int a = 0; a < f[id].arg_count(); ++a) {
      const Id arg = f[id].args[a];
      ++uses[arg];
      if (!seen[arg]) {
        seen[arg] = true;
        work.push_back(arg);
      }
    }
  }
  return uses;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool is_name_or_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_word(c) || c == '.'; });
}

/// The weakest precedence that an operand of an operator may have without parentheses.
Precedence place_beside(char op, bool right) {
  switch (op) {
    case '*':
    case '/':
    case '%': return right ? Precedence::unary : Precedence::product;
    case '+':
    case '-': return right ? Precedence::product : Precedence::sum;
    case '<':
    case '>':
    case '=':
    case '!':
    case '?':
    case ':': return Precedence::sum;
    case '&':
    case '|':
    case '^': return Precedence::unary;
    default: return Precedence::loose;  // '(' ',' ')' and the ends
  }
}

Precedence precedence_of_template(std::string_view text) {
  int open = 0;
  Precedence loosest = Precedence::atom;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++open;
    if (c == ')' || c == ']') --open;
    if (open > 0) continue;
    Precedence here = Precedence::atom;
    if (c == '+' || c == '-') here = i == 0 ? Precedence::unary : Precedence::sum;
    if (c == '*' || c == '/' || c == '%') here = Precedence::product;
    if (std::string_view("<>=!&|^?~").find(c) != std::string_view::npos)
      here = i == 0 ? Precedence::unary : Precedence::loose;
    loosest = std::max(loosest, here);
  }
  return loosest;
}

}  // namespace

std::string used_helpers(std::span<const Helper> table, std::string_view body) {
  const auto mentions = [](std::string_view text, std::string_view name) {
    for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      const size_t end = at + name.size();
      if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
    }
    return false;
  };
  std::vector<bool> used(table.size(), false);
  for (bool grew = true; grew;) {
    grew = false;
    for (size_t i = 0; i < table.size(); ++i) {
      if (used[i]) continue;
      bool needed = mentions(body, table[i].name);
      for (size_t j = 0; j < table.size() && !needed; ++j)
        needed = used[j] && mentions(table[j].text, table[i].name);
      if (needed) used[i] = grew = true;
    }
  }
  std::string out;
  for (size_t i = 0; i < table.size(); ++i)
    if (used[i]) out.append(table[i].text).append("\n");
  return out;
}

Printer::Printer(const ir::Function& function)
    : function_(function), uses_(count_uses(function)), left_(uses_) {}

std::string Printer::print_body() {
  print_block(0);
  return std::move(out_);
}

void Printer::line(std::string_view text) {
  if (!text.empty()) out_.append(size_t(indent_) * 2, ' ');
  out_.append(text).append("\n");
}

std::string Printer::fresh(std::string_view stem) {
  auto [it, added] = counters_.try_emplace(std::string(stem), 0);
  return fmt::format("{}{}", stem, it->second++);
}

// ── text of expressions
// ─────────────────────────────────────────────────────────────────────────────────────────────

std::string Printer::tight(const Expression& e, Precedence at_most) {
  return e.precedence <= at_most ? e.text : fmt::format("({})", e.text);
}

int Printer::max_depth(std::span<const Expression> operands) {
  int depth = 0;
  for (const Expression& e : operands) depth = std::max(depth, e.depth);
  return depth;
}

Expression Printer::expand(std::string_view text, std::span<const Expression> operands) {
  if (text == "$0") return operands[0];  // binds as it did
  Expression out{{}, precedence_of_template(text), max_depth(operands) + 1};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out.text += text[i];
      continue;
    }
    const size_t operand = size_t(text[++i] - '0');
    const size_t start = i - 1;
    const size_t before = start == 0 ? std::string_view::npos : text.find_last_not_of(' ', start - 1);
    const size_t after = text.find_first_not_of(' ', i + 1);
    Precedence place = Precedence::loose;
    if (before != std::string_view::npos) place = std::min(place, place_beside(text[before], true));
    if (after != std::string_view::npos) place = std::min(place, place_beside(text[after], false));
    // WGSL has no order of sums and shifts.
    const auto shifts = [&](std::string_view around) { return around == "<<" || around == ">>"; };
    if ((before != std::string_view::npos && before > 0 && shifts(text.substr(before - 1, 2))) ||
        (after != std::string_view::npos && shifts(text.substr(after, 2))))
      place = std::min(place, Precedence::unary);
    const bool prefixed = before != std::string_view::npos && before + 1 == start &&
                          std::string_view("-~!").find(text[before]) != std::string_view::npos;
    if (prefixed) place = Precedence::atom;
    const Expression& e = operands[operand];
    // a + -1 reads a - 1; whole numbers only.
    if (before != std::string_view::npos && text[before] == '+' && e.text.size() > 1 && e.text[0] == '-' &&
        std::all_of(e.text.begin() + 1, e.text.end(), [](unsigned char c) { return std::isdigit(c); })) {
      out.text[out.text.rfind('+')] = '-';
      out.text += e.text.substr(1);
      continue;
    }
    out.text += tight(e, place);
  }
  return out;
}

Expression Printer::call(std::string_view name, std::initializer_list<const Expression*> arguments) {
  Expression out{std::string(name) + "(", Precedence::atom, 0};
  bool first = true;
  for (const Expression* e : arguments) {
    if (!first) out.text += ", ";
    first = false;
    out.text += e->text;
    out.depth = std::max(out.depth, e->depth);
  }
  out.text += ")";
  ++out.depth;
  return out;
}

Expression Printer::elementary(const Instruction& instruction, Type type,
                               std::span<const Expression> operands) {
  return expand(op_template(instruction, type), operands);
}

Expression Printer::extract(const Expression& value, int component) {
  return {tight(value, Precedence::atom) + "." + "xyzw"[component], Precedence::atom, value.depth};
}

std::string Printer::for_head(Type type, std::string_view name, const Expression& begin,
                              const Expression& end, int64_t step, bool /*oversteps*/) {
  const std::string advance = step == 1    ? fmt::format("++{}", name)
                              : step == -1 ? fmt::format("--{}", name)
                              : step < 0   ? fmt::format("{} -= {}", name, uint64_t(0) - uint64_t(step))
                                           : fmt::format("{} += {}", name, step);
  return fmt::format("for ({} {} = {}; {} {} {}; {}) {{", type_name(type), name, begin.text, name,
                     step > 0 ? "<" : ">", tight(end, Precedence::sum), advance);
}

// ── values: pending, named
// ──────────────────────────────────────────────────────────────────────────────────────────

Expression Printer::name_value(Id id, const Expression& value) {
  const Instruction& i = function_[id];
  const std::string name = fresh("v");
  const bool wide = i.op == Op::load || i.op == Op::shared_load || i.op == Op::call;
  line(declare(i.type, wide ? i.lanes : 1, name, value, false));
  const Expression atom{name, Precedence::atom, 0};
  named_[id] = atom;
  return atom;
}

Expression Printer::use(Id id) {
  --left_[id];
  if (const auto it = named_.find(id); it != named_.end()) return it->second;
  for (auto it = pending_.begin(); it != pending_.end(); ++it) {
    if (it->id != id) continue;
    read_memory_ |= it->reads_memory;
    read_variables_.insert(read_variables_.end(), it->variables.begin(), it->variables.end());
    if (left_[id] > 0) return it->value;
    Expression value = std::move(it->value);
    pending_.erase(it);
    return value;
  }
  throw InternalError(fmt::format("value %{} ({}) used before its definition", id, name(function_[id].op)),
                      fmt::format("kernel {}", function_.name), "verified IR");
}

Expression Printer::use_atom(Id id) {
  const bool lasting = named_.contains(id);
  const Expression e = use(id);
  if (is_name_or_number(e.text)) return e;
  if (lasting) {  // a literal: the name made here ends with its block, the text does not
    const Expression atom = name_value(id, e);
    named_[id] = e;
    return atom;
  }
  const auto it =
      std::find_if(pending_.begin(), pending_.end(), [&](const Pending& p) { return p.id == id; });
  if (it != pending_.end()) pending_.erase(it);
  return name_value(id, e);
}

void Printer::define(Id id, Expression value, bool reads_memory, std::vector<Id> variables) {
  const Instruction& i = function_[id];
  if (uses_[id] == 0) return;
  const bool repeatable = value.depth == 0 && i.op == Op::get;
  if ((uses_[id] == 1 || repeatable) && i.lanes == 1 && value.depth <= kMaxDepth &&
      value.text.size() <= kMaxText)
    pending_.push_back({id, std::move(value), reads_memory, std::move(variables)});
  else
    name_value(id, value);
}

template <class Predicate>
void Printer::flush(Predicate needed) {
  std::vector<Pending> kept;
  for (Pending& p : std::exchange(pending_, {})) {
    if (needed(p))
      name_value(p.id, p.value);
    else
      kept.push_back(std::move(p));
  }
  pending_ = std::move(kept);
}
void Printer::flush_all() {
  flush([](const Pending&) { return true; });
}
void Printer::flush_memory() {
  flush([](const Pending& p) { return p.reads_memory; });
}
void Printer::flush_variable(Id variable) {
  flush([&](const Pending& p) {
    return std::find(p.variables.begin(), p.variables.end(), variable) != p.variables.end();
  });
}

// ── statements
// ──────────────────────────────────────────────────────────────────────────────────────────────────────

void Printer::print_block(uint32_t block) {
  for (Id id : function_.blocks[block]) print_instruction(id);
}

void Printer::print_branch_body(uint32_t block) {
  ++indent_;
  print_block(block);
  --indent_;
}

void Printer::print_if(Id id) {
  const Instruction& i = function_[id];
  std::string head = fmt::format("if ({}) {{", use(i.args[0]).text);
  flush_all();
  const auto is_empty = [&](uint32_t b) { return b == ir::kNoBlock || function_.blocks[b].empty(); };
  line(head);
  print_branch_body(i.blocks[0]);
  uint32_t otherwise = i.blocks[1];
  while (!is_empty(otherwise)) {
    const ir::Block& block = function_.blocks[otherwise];
    // A lone `if` whose condition has a name continues the chain.
    const Instruction& inner = function_[block.front()];
    if (block.size() == 1 && inner.op == Op::if_ && named_.contains(inner.args[0])) {
      line(fmt::format("}} else if ({}) {{", use(inner.args[0]).text));
      print_branch_body(inner.blocks[0]);
      otherwise = inner.blocks[1];
      continue;
    }
    line("} else {");
    print_branch_body(otherwise);
    break;
  }
  line("}");
}

void Printer::print_for(Id id) {
  const Instruction& i = function_[id];
  const Instruction& step_value = function_[i.args[2]];
  if (step_value.op != Op::constant)
    throw InternalError("for_ with a step that is not a constant", fmt::format("kernel {}", function_.name),
                        "a constant");
  const bool oversteps = ir::may_overstep(function_, i);
  const Expression begin = oversteps ? use_atom(i.args[0]) : use(i.args[0]);
  const Expression end = use_atom(i.args[1]);
  --left_[i.args[2]];
  const int64_t step = is_wide(i.type == Type::none ? step_value.type : i.type)
                           ? int64_t(step_value.imm)
                           : int32_t(uint32_t(step_value.imm));
  flush_all();
  const std::string name = loops_ < 6 ? std::string(1, "ijklmn"[loops_]) : fmt::format("i_{}", loops_);
  const ir::Block& body = function_.blocks[i.blocks[0]];
  if (!body.empty() && function_[body.front()].op == Op::loop_index)
    named_[body.front()] = {name, Precedence::atom, 0};
  before_for(i, step);
  line(for_head(step_value.type, name, begin, end, step, oversteps));
  ++loops_;
  ++indent_;
  enter_loop(i);
  print_block(i.blocks[0]);
  leave_loop(i);
  --indent_;
  --loops_;
  line("}");
  after_loop();
}

/// The end of a function of values.
void Printer::return_values(Id id) {
  const Instruction& i = function_[id];
  std::string text;
  for (int a = 0; a < i.arg_count(); ++a) text += (a ? ", " : "") + use(i.args[size_t(a)]).text;
  if (i.arg_count() > 1)
    text = fmt::format("{}{}{}{}", type_name(function_[i.args[0]].type, i.arg_count()), brackets()[0], text,
                       brackets()[1]);
  line(fmt::format("return {};", text));
}

void Printer::print_loop(Id id) {
  const Instruction& i = function_[id];
  flush_all();
  line(loop_head());
  ++indent_;
  enter_loop(i);
  print_block(i.blocks[0]);
  leave_loop(i);
  --indent_;
  line("}");
  after_loop();
}

std::optional<Expression> Printer::place(const Instruction& i) {
  const int axis = int(i.imm % 8);
  const auto buffer = uint32_t(i.imm / 8);
  switch (i.op) {
    case Op::constant: return literal(i.type, i.imm);
    case Op::coord: return coord(int(i.imm));
    case Op::extent: return extent(int(i.imm));
    case Op::local_id: return local_id(int(i.imm));
    case Op::lane: return lane();
    case Op::param: return param(uint32_t(i.imm));
    case Op::shape: return shape(buffer, axis);
    case Op::stride: return stride(buffer, axis);
    case Op::extract: return extract(use(i.args[0]), int(i.imm));
    default: return {};
  }
}

Expression Printer::arithmetic(const Instruction& i) {
  const Type type = function_[i.args[0]].type;
  const std::string_view text = op_template(i, type);
  std::vector<Expression> operands;
  for (int a = 0; a < i.arg_count(); ++a) {
    const std::string mark = fmt::format("${}", a);
    const size_t first = text.find(mark);
    const bool repeated =
        first != std::string_view::npos && text.find(mark, first + 1) != std::string_view::npos;
    operands.push_back(repeated ? use_atom(i.args[a]) : use(i.args[a]));
  }
  return elementary(i, type, operands);
}

std::optional<Expression> Printer::expression(const Instruction& i) {
  if (ir::is_elementary(i.op) || ir::is_math(i.op)) return arithmetic(i);
  switch (i.op) {
    case Op::select: {
      const Expression condition = use(i.args[0]), yes = use(i.args[1]), no = use(i.args[2]);
      return select(condition, yes, no);
    }
    case Op::convert: return convert(i.type, function_[i.args[0]].type, use(i.args[0]));
    case Op::bitcast: return bitcast(i.type, function_[i.args[0]].type, use(i.args[0]));
    case Op::uniform: return use(i.args[0]);
    case Op::call: {
      std::vector<Expression> values;
      for (int a = 0; a < i.arg_count(); ++a) values.push_back(use(i.args[size_t(a)]));
      return called(uint32_t(i.imm), values);
    }
    case Op::clamp_index: {
      const Expression c = use(i.args[0]), n = use_atom(i.args[1]);
      return clamp_index(c, n);
    }
    case Op::load:
    case Op::shared_load:
    case Op::local_load: {
      const Expression index = use(i.args[0]);
      read_memory_ = true;
      return i.op == Op::load          ? load(i, index)
             : i.op == Op::shared_load ? shared_load(i, index)
                                       : local_load(uint32_t(i.imm), index);
    }
    case Op::get: {
      Expression variable = use(i.args[0]);
      read_variables_.push_back(i.args[0]);
      return variable;
    }
    default: return {};
  }
}

void Printer::print_result(Id id, const Expression& result) {
  if (uses_[id] > 0)
    name_value(id, result);
  else
    line(result.text + ";");
}

void Printer::print_store(const Instruction& i) {
  const Expression index = use(i.args[0]);
  std::vector<Expression> values;
  // A wide store may become several statements: none may read what another has written.
  const int lanes = i.op == Op::store ? i.lanes : 1;
  for (int k = 0; k < lanes; ++k) values.push_back(lanes > 1 ? use_atom(i.args[1 + k]) : use(i.args[1 + k]));
  flush_memory();
  if (i.op == Op::store)
    store(i, index, values);
  else if (i.op == Op::shared_store)
    shared_store(uint32_t(i.imm), index, values[0]);
  else
    local_store(uint32_t(i.imm), index, values[0]);
}

void Printer::print_atomic(Id id) {
  const Instruction& i = function_[id];
  const Expression index = use(i.args[0]), value = use(i.args[1]);
  const bool compares = i.args[2] != ir::kNone;
  const Expression compare = compares ? use(i.args[2]) : Expression{};
  flush_memory();
  print_result(id,
               atomic(i, ir::AtomicTarget::from_bits(i.imm), index, value, compares ? &compare : nullptr));
}

bool Printer::print_memory(Id id) {
  const Instruction& i = function_[id];
  switch (i.op) {
    case Op::store:
    case Op::shared_store:
    case Op::local_store: print_store(i); return true;
    case Op::atomic: print_atomic(id); return true;
    case Op::group_reduce: {
      const Expression value = use(i.args[0]);
      flush_memory();
      print_result(id, group_reduce(i, value));
      return true;
    }
    case Op::barrier:
      flush_memory();
      barrier();
      return true;
    case Op::async_copy: {
      const Expression index = use(i.args[0]), offset = use(i.args[1]);
      flush_memory();
      async_copy(i, index, offset);
      return true;
    }
    case Op::async_commit: async_commit(); return true;
    case Op::async_wait:
      flush_memory();
      async_wait(int(i.imm));
      return true;
    default: return false;
  }
}

bool Printer::print_flow(Id id) {
  const Instruction& i = function_[id];
  switch (i.op) {
    case Op::variable: {
      const Expression first = use(i.args[0]);
      const std::string name = fresh("r");
      line(declare(i.type, 1, name, first, true));
      named_[id] = {name, Precedence::atom, 0};
      return true;
    }
    case Op::set: {
      const Expression variable = use(i.args[0]), value = use(i.args[1]);
      flush_variable(i.args[0]);
      line(fmt::format("{} = {};", variable.text, value.text));
      return true;
    }
    case Op::loop_index: return true;  // named by its loop
    case Op::if_: print_if(id); return true;
    case Op::for_: print_for(id); return true;
    case Op::loop: print_loop(id); return true;
    case Op::break_: break_statement(); return true;
    case Op::continue_: line("continue;"); return true;
    case Op::return_: return_statement(); return true;
    case Op::result: return_values(id); return true;
    default: return false;
  }
}

void Printer::print_instruction(Id id) {
  const Instruction& i = function_[id];
  read_variables_.clear();
  read_memory_ = false;
  if (!has_effect(i.op) && uses_[id] == 0 && i.op != Op::variable) return;
  if (std::optional<Expression> named = place(i)) {
    named_[id] = std::move(*named);
  } else if (std::optional<Expression> value = expression(i)) {
    define(id, std::move(*value), read_memory_, std::move(read_variables_));
  } else if (!print_memory(id) && !print_flow(id)) {
    throw InternalError(fmt::format("operation {} has no text", name(i.op)),
                        fmt::format("kernel {}", function_.name), "a known operation");
  }
}

}  // namespace lockstep::clike
