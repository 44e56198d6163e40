#include "solve/datasets/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/platform/from_chars.hpp"
#include "solve/datasets/faddeeva.hpp"
#include "solve/datasets/line_shapes.hpp"

namespace lockstep::solve {

using autodiff::Tape;
using autodiff::Value;

struct Expression::Node {
  enum class Kind : uint8_t { number, name, negate, add, subtract, multiply, divide, power, call };
  Kind kind = Kind::number;
  double number = 0;
  int index = 0;  // of the name, or of the function in functions()
  std::vector<std::shared_ptr<const Node>> arguments;
};

namespace {

using Node = Expression::Node;
using Pointer = std::shared_ptr<const Node>;
constexpr int kDeepest = 500;        // nested brackets and signs
constexpr size_t kLongest = 10'000;  // characters; building recurses along chains of operators

struct Function {
  std::string_view name;
  autodiff::Op op;
  int arity;
  Value (*build)(const Value&, const Value&) = nullptr;  // replaces `op` in what is no node of a graph
};

/// The functions of ops.def that a graph has, other names that formulas use for some of them, and functions of several
/// nodes.
const std::vector<Function>& functions() {
  static const std::vector<Function> kAll = [] {
    using autodiff::Op;
    std::vector<Function> all{{"sign", Op::sign, 1}};
    const auto add = [&](std::string_view word, std::string_view kind, Op op, int arity) {
      if (kind == "VALUE" && !word.starts_with("operator")) all.push_back({word, op, arity});
    };
#define LOCKSTEP_NODE(name, word, kind, arity, ...) add(#word, #kind, Op::name, arity);
#define LOCKSTEP_MATH(name, arity, ...) add(#name, "VALUE", Op::name, arity);
#include "lockstep/ir/ops.def"
    for (const Function& other :
         {Function{"ln", Op::log, 1}, Function{"arcsin", Op::asin, 1}, Function{"arccos", Op::acos, 1},
          Function{"arctan", Op::atan, 1}, Function{"mod", Op::fmod, 2},
          Function{"faddeeva", Op::constant, 2, &real_faddeeva}})
      all.push_back(other);
    return all;
  }();
  return kAll;
}

Pointer make(Node::Kind kind, std::vector<Pointer> arguments) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->arguments = std::move(arguments);
  return node;
}

/// Recursive descent: sum of products of signed factors; a power binds its base tighter than a sign.
class Parser {
 public:
  Parser(std::string_view text, std::string_view where, std::vector<std::string>& names)
      : text_(text), where_(where), names_(names) {}

  /// Of a shape: x stands for the argument, other names have the prefix.
  Parser(const LineShape& shape, std::vector<std::string>& names, Pointer argument, std::string prefix)
      : Parser(shape.formula, shape.name, names) {
    argument_ = std::move(argument), prefix_ = std::move(prefix);
  }

  Pointer whole() {
    if (text_.size() > kLongest)
      fail(fmt::format("{} characters", text_.size()), fmt::format("at most {}", kLongest));
    Pointer node = sum();
    skip_space();
    if (at_ < text_.size()) fail(fmt::format("\"{}\"", text_[at_]), "an operator or the end of the formula");
    return node;
  }

 private:
  struct Deeper {
    explicit Deeper(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest)
        parser_.fail("formula nested too deeply", "at most 500 nested brackets or signs");
    }
    ~Deeper() { --parser_.depth_; }
    Parser& parser_;
  };

  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    constexpr size_t kShown = 120;
    std::string shown(text_.substr(0, kShown));
    for (char& c : shown)
      if (static_cast<unsigned char>(c) < ' ') c = ' ';
    throw InputError(fmt::format("{} in \"{}{}\"", what, shown, text_.size() > kShown ? "…" : ""),
                     fmt::format("{}, column {}", where_, at_ + 1), expected);
  }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take_power() {
    if (take('^')) return true;
    if (peek() == '*' && text_.substr(at_, 2) == "**") {
      at_ += 2;
      return true;
    }
    return false;
  }

  Pointer sum() {
    Pointer left = product();
    for (;;) {
      if (take('+'))
        left = make(Node::Kind::add, {left, product()});
      else if (take('-'))
        left = make(Node::Kind::subtract, {left, product()});
      else
        return left;
    }
  }
  Pointer product() {
    Pointer left = factor();
    for (;;) {
      if (peek() == '*' && text_.substr(at_, 2) != "**") {
        ++at_;
        left = make(Node::Kind::multiply, {left, factor()});
      } else if (take('/')) {
        left = make(Node::Kind::divide, {left, factor()});
      } else {
        return left;
      }
    }
  }
  Pointer factor() {
    const Deeper deeper(*this);
    if (take('-')) return make(Node::Kind::negate, {factor()});
    if (take('+')) return factor();
    Pointer base = atom();
    if (take_power()) return make(Node::Kind::power, {base, factor()});
    return base;
  }
  Pointer bracketed(char close) {
    Pointer inner = sum();
    if (!take(close))
      fail(at_ < text_.size() ? fmt::format("\"{}\"", text_[at_]) : "end of the formula",
           fmt::format("\"{}\"", close));
    return inner;
  }
  Pointer atom() {
    const char c = peek();
    if (c == '(') return ++at_, bracketed(')');
    if (c == '[') return ++at_, bracketed(']');
    if ((c >= '0' && c <= '9') || c == '.') return number();
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') return name();
    fail(c ? fmt::format("\"{}\"", c) : "end of the formula", "a number, a name or an opening bracket");
  }
  Pointer number() {
    double value = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = platform::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc() || !std::isfinite(value)) fail("number", "digits, within the range of f64");
    at_ += size_t(end - first);
    auto node = std::make_shared<Node>();
    node->number = value;
    return node;
  }
  std::string word() {
    const size_t first = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      ++at_;
    return std::string(text_.substr(first, at_ - first));
  }
  Pointer name() {
    const size_t first = at_;
    std::string word = this->word();
    const char next = peek();
    if (next == '(' || next == '[') return call(word, first);
    auto node = std::make_shared<Node>();
    if (word == "pi") {
      node->number = std::numbers::pi;
      return node;
    }
    if (argument_ && word == "x") return argument_;
    word = prefix_ + word;
    node->kind = Node::Kind::name;
    const auto known = std::find(names_.begin(), names_.end(), word);
    node->index = int(known - names_.begin());
    if (known == names_.end()) names_.push_back(word);
    return node;
  }
  Pointer call(const std::string& word, size_t first) {
    std::string lower = word;
    for (char& c : lower) c = char(std::tolower(static_cast<unsigned char>(c)));
    for (const LineShape& shape : line_shapes())
      if (shape.name == lower) return expanded(shape);
    const auto found = std::find_if(functions().begin(), functions().end(),
                                    [&](const Function& f) { return f.name == lower; });
    if (found == functions().end()) {
      at_ = first;
      std::string all;
      for (const Function& f : functions()) all += fmt::format("{}{}", all.empty() ? "" : ", ", f.name);
      for (const LineShape& shape : line_shapes()) all += fmt::format(", {}", shape.name);
      fail(fmt::format("unknown function \"{}\"", word),
           fmt::format("one of {}; or * before a bracket", all));
    }
    const std::shared_ptr<Node> node = operands(word, found->arity, first);
    node->index = int(found - functions().begin());
    return node;
  }
  std::shared_ptr<Node> operands(const std::string& word, int arity, size_t first) {
    auto node = std::make_shared<Node>();
    node->kind = Node::Kind::call;
    const char close = peek() == '(' ? ')' : ']';
    ++at_;
    do node->arguments.push_back(sum());
    while (take(','));
    if (!take(close))
      fail(at_ < text_.size() ? fmt::format("\"{}\"", text_[at_]) : "end of the formula",
           fmt::format("\",\" or \"{}\"", close));
    if (int(node->arguments.size()) != arity) {
      at_ = first;
      fail(fmt::format("{} with {} arguments", word, node->arguments.size()), fmt::format("{}", arity));
    }
    return node;
  }

  Pointer expanded(const LineShape& shape) {
    const char close = peek() == '(' ? ')' : ']';
    if (in_shape_)
      fail(fmt::format("{} in the argument of a shape", shape.name), "an expression without one");
    in_shape_ = true;  // arguments that double at each level would have no end
    ++at_;
    Pointer argument = sum();
    in_shape_ = false;
    std::string prefix;
    if (take(',')) {
      skip_space();
      prefix = word();
      if (prefix.empty() || std::isdigit(static_cast<unsigned char>(prefix[0])))
        fail(fmt::format("the prefix of {}", shape.name), "a name that its parameters begin with");
    }
    if (!take(close))
      fail(fmt::format("the arguments of {}", shape.name),
           fmt::format("an expression, or one and a prefix for the names, then \"{}\"", close));
    return Parser(shape, names_, std::move(argument), std::move(prefix)).whole();
  }

  std::string_view text_, where_;
  std::vector<std::string>& names_;
  Pointer argument_ = nullptr;
  std::string prefix_;
  bool in_shape_ = false;
  size_t at_ = 0;
  int depth_ = 0;
};

Value apply(autodiff::Op op, const Value& a) { return a.graph().make(op, {a}); }
Value apply(autodiff::Op op, const Value& a, const Value& b) { return a.graph().make(op, {a, b}); }

Value build_node(const Node& node, Tape& graph, const std::vector<Value>& leaves) {
  const auto argument = [&](size_t k) { return build_node(*node.arguments[k], graph, leaves); };
  switch (node.kind) {
    case Node::Kind::number: return graph.constant(node.number);
    case Node::Kind::name: return leaves[size_t(node.index)];
    case Node::Kind::negate: return -argument(0);
    case Node::Kind::add: return argument(0) + argument(1);
    case Node::Kind::subtract: return argument(0) - argument(1);
    case Node::Kind::multiply: return argument(0) * argument(1);
    case Node::Kind::divide: return argument(0) / argument(1);
    case Node::Kind::power: return autodiff::pow(argument(0), argument(1));
    case Node::Kind::call: {
      const Function& f = functions()[size_t(node.index)];
      if (f.arity == 1) return apply(f.op, argument(0));
      return f.build ? f.build(argument(0), argument(1)) : apply(f.op, argument(0), argument(1));
    }
  }
  throw InternalError("formula", "build", "a kind of node");
}

}  // namespace

Expression Expression::parse(std::string_view text, std::string_view where) {
  Expression out;
  out.text_ = std::string(text);
  out.root_ = Parser(out.text_, where, out.names_).whole();
  return out;
}

Value Expression::build(Tape& graph, const std::function<Value(const std::string&)>& leaf) const {
  std::vector<Value> leaves;
  for (const std::string& name : names_) leaves.push_back(leaf(name));
  return build_node(*root_, graph, leaves);
}

double Expression::evaluate(const std::map<std::string, double>& values) const {
  Tape graph;
  std::vector<double> leaves;
  const Value value = build(graph, [&](const std::string& name) {
    const auto found = values.find(name);
    if (found == values.end())
      throw InputError(fmt::format("no value of {}", name), text_, "a value for each name");
    leaves.push_back(found->second);
    return graph.variable(name);
  });
  return autodiff::evaluate<double>(value, leaves);
}

}  // namespace lockstep::solve
