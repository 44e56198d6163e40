// Structured IR to C-like text. CUDA C++ and WGSL derive from this: they specify how types, literals, memory and
// barriers are written. The traversal of blocks, nesting of expressions, names and indentation are here. The same
// function gives the same text.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/ir/function.hpp"

namespace lockstep::clike {

/// How tightly the text of an expression binds.
enum class Precedence : uint8_t {
  atom,     // name, literal, call, a[i], a.x, (…)
  unary,    // -a
  product,  // a * b, a / b, a % b
  sum,      // a + b, a - b
  loose,    // anything else: needs parentheses as an operand
};

/// Text of a value.
struct Expression {
  std::string text;
  Precedence precedence = Precedence::atom;
  int depth = 0;  // of nested operations
};

/// A piece of the prelude, printed where the body (or another printed piece) uses its name.
struct Helper {
  std::string_view name;  // "ls_add"
  std::string_view text;
};
/// The helpers that `body` needs, in the table's order. A helper may use those before and after it by name;
/// the table's order must be a legal order of definition.
std::string used_helpers(std::span<const Helper> table, std::string_view body);

class Printer {
 public:
  virtual ~Printer() = default;

 protected:
  explicit Printer(const ir::Function& function);

  /// Statements of blocks[0], indented once. May be called once.
  std::string print_body();

  // ── the language
  // ──────────────────────────────────────────────────────────────────────────────────────────────────
  virtual std::string type_name(Type type, int lanes = 1) const = 0;
  /// Exactly these bits.
  virtual Expression literal(Type type, uint64_t bits) = 0;
  /// Template of a LOCKSTEP_OP or LOCKSTEP_MATH row: $0 $1 $2 are operands. Operands get parentheses as
  /// needed; one that the template names twice is given a name first. `type` is the operands' type.
  virtual std::string_view op_template(const ir::Instruction& instruction, Type type) const = 0;
  /// Whole expression of an elementary operation where the template does not do; default:
  /// expand(op_template).
  virtual Expression elementary(const ir::Instruction& instruction, Type type,
                                std::span<const Expression> operands);
  virtual Expression convert(Type to, Type from, const Expression& value) = 0;
  virtual Expression bitcast(Type to, Type from, const Expression& value) = 0;
  virtual Expression select(const Expression& condition, const Expression& yes, const Expression& no) = 0;
  virtual Expression clamp_index(const Expression& coordinate, const Expression& extent) = 0;

  // Parameters and places: repeated freely, so give names or fields.
  virtual Expression coord(int axis) = 0;
  virtual Expression extent(int axis) = 0;
  virtual Expression local_id(int axis) = 0;
  virtual Expression lane() = 0;
  virtual Expression param(uint32_t scalar) = 0;
  virtual Expression shape(uint32_t buffer, int axis) = 0;
  virtual Expression stride(uint32_t buffer, int axis) = 0;

  // Memory. Values of several lanes are one name; extract picks a component. Store hooks write statements
  // with line().
  virtual Expression load(const ir::Instruction& instruction, const Expression& index) = 0;
  virtual void store(const ir::Instruction& instruction, const Expression& index,
                     std::span<const Expression> values) = 0;
  virtual Expression extract(const Expression& value, int component);
  virtual Expression shared_load(const ir::Instruction& i, const Expression& index) = 0;
  virtual void shared_store(uint32_t array, const Expression& index, const Expression& value) = 0;
  virtual Expression local_load(uint32_t array, const Expression& index) = 0;
  virtual void local_store(uint32_t array, const Expression& index, const Expression& value) = 0;
  /// The old value. The result becomes a statement of its own or the start of a declaration. `compare` may be
  /// null.
  virtual Expression atomic(const ir::Instruction& instruction, ir::AtomicTarget target,
                            const Expression& index, const Expression& value, const Expression* compare) = 0;
  virtual void barrier() = 0;
  /// May write statements; the result starts a declaration.
  virtual Expression group_reduce(const ir::Instruction& instruction, const Expression& value) = 0;
  virtual void async_copy(const ir::Instruction& instruction, const Expression& shared_index,
                          const Expression& offset) = 0;
  virtual void async_commit() = 0;
  virtual void async_wait(int open) = 0;

  /// Text of a call of function().functions[number].
  Expression called(uint32_t number, std::span<const Expression> values) const;
  /// The functions that this one calls, each before its callers.
  std::string called_functions();
  virtual std::unique_ptr<Printer> printer_of(const ir::Function& called) const = 0;
  /// "float p0", "p0: f32"
  virtual std::string parameter(Type type, const std::string& name) const = 0;
  /// This function, which others call, with its parameters and the type of its result.
  virtual std::string function_text(const std::string& name, const std::string& taken,
                                    const std::string& given) = 0;
  /// Names of functions begin with this, and end with their numbers.
  std::string prefix = "called";
  /// Around the components of a vector: "{}" or "()".
  virtual std::string_view brackets() const = 0;

  // Statements.
  /// `const float v = e;` or `float v = e;`
  virtual std::string declare(Type type, int lanes, std::string_view name, const Expression& value,
                              bool is_mutable) const = 0;
  /// `for (int i = a; i < b; i += s) {`. `oversteps`: the counter may come within a step of the end of its type, which it
  /// must not pass.
  virtual std::string for_head(Type type, std::string_view name, const Expression& begin,
                               const Expression& end, int64_t step, bool oversteps);
  /// Called before the head of a for_ is written.
  virtual void before_for(const ir::Instruction&, int64_t /*step*/) {}
  virtual std::string loop_head() const = 0;  // "for (;;) {"
  virtual void return_statement() { line("return;"); }
  virtual void break_statement() { line("break;"); }
  /// Called behind a loop's closing brace.
  virtual void after_loop() {}
  /// Called before the first and after the last statement of a loop's body.
  virtual void enter_loop(const ir::Instruction&) {}
  virtual void leave_loop(const ir::Instruction&) {}

  // ── tools
  // ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  const ir::Function& function() const { return function_; }
  /// Appends an indented line.
  void line(std::string_view text);
  void indent() { ++indent_; }
  void dedent() { --indent_; }
  /// A new name with this stem: v0, v1 …
  std::string fresh(std::string_view stem);
  /// Fills a template. Parentheses where the operand binds more loosely than its place.
  static Expression expand(std::string_view text, std::span<const Expression> operands);
  /// The operand's text, in parentheses unless it binds at least this tightly.
  static std::string tight(const Expression& e, Precedence at_most);
  /// `name(a, b)`
  static Expression call(std::string_view name, std::initializer_list<const Expression*> arguments);
  static int max_depth(std::span<const Expression> operands);
  /// Uses of a value in the function.
  int uses(ir::Id id) const { return uses_[id]; }

 private:
  struct Pending {
    ir::Id id;
    Expression value;
    bool reads_memory = false;
    std::vector<ir::Id> variables;  // that the text reads
  };

  void print_block(uint32_t block);
  void print_instruction(ir::Id id);
  /// Text that is valid at any place: literals, parameters, places, components.
  std::optional<Expression> place(const ir::Instruction& instruction);
  /// The text of a value; nothing for statements.
  std::optional<Expression> expression(const ir::Instruction& instruction);
  Expression arithmetic(const ir::Instruction& instruction);
  /// Statements on memory and groups, on variables and flow; false for others.
  bool print_memory(ir::Id id);
  bool print_flow(ir::Id id);
  void print_store(const ir::Instruction& instruction);
  void print_atomic(ir::Id id);
  /// A statement whose result may be used.
  void print_result(ir::Id id, const Expression& result);
  void print_for(ir::Id id);
  void return_values(ir::Id id);
  void print_if(ir::Id id);
  void print_loop(ir::Id id);
  void print_branch_body(uint32_t block);

  /// The value's text for one use.
  Expression use(ir::Id id);
  /// As use(), but surely a name or a literal.
  Expression use_atom(ir::Id id);
  void define(ir::Id id, Expression value, bool reads_memory, std::vector<ir::Id> variables);
  Expression name_value(ir::Id id, const Expression& value);
  void flush_all();
  void flush_memory();
  void flush_variable(ir::Id variable);
  template <class Predicate>
  void flush(Predicate needed);

  const ir::Function& function_;
  std::vector<int> uses_;
  std::vector<int> left_;               // uses not printed yet
  std::map<ir::Id, Expression> named_;  // values with a name, or with text that is valid at any place
  std::vector<Pending> pending_;        // values not printed yet, in order of definition
  std::vector<ir::Id> read_variables_;  // by the pending values that use() took since the last define()
  bool read_memory_ = false;
  std::map<std::string, int, std::less<>> counters_;
  std::string out_;
  int indent_ = 1;
  int loops_ = 0;
};

}  // namespace lockstep::clike
